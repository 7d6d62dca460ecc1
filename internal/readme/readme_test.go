package readme_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// programs are the Go code blocks of the README, in order.
func programs(t *testing.T) [][]byte {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	var blocks [][]byte
	for _, match := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}

// TestProgramCompiles vets the README's program as if it stood in a folder of
// this module.
func TestProgramCompiles(t *testing.T) {
	blocks := programs(t)
	require.Len(t, blocks, 1, "the README has one program")
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(source, blocks[0], 0o600))

	here, err := filepath.Abs("program/main.go")
	require.NoError(t, err)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {here: source}})
	require.NoError(t, err)
	overlayFile := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, overlay, 0o600))

	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "program"), "-overlay", overlayFile, "./program").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
