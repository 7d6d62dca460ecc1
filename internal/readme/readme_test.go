package readme_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// page returns the text of a file. name is relative to the repository.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", name))
	require.NoError(t, err)
	return string(text)
}

// The README has at most 600 words, so that it is short enough to be read completely.
func TestREADMEIsShort(t *testing.T) {
	require.LessOrEqual(t, len(strings.Fields(page(t, "README.md"))), 600, "words")
}

// The README has one program, which is a part of examples/processagent/main.go, whose test builds and runs it. It is on
// the first screen: before the first heading there are at most 30 lines.
func TestTheProgramIsThatOfTheProcessAgent(t *testing.T) {
	text := page(t, "README.md")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1)
	require.Len(t, blocks, 1)
	require.Contains(t, page(t, "examples/processagent/main.go"), blocks[0][1])
	before, _, found := strings.Cut(text, "\n## ")
	require.True(t, found)
	require.LessOrEqual(t, strings.Count(before, "\n"), 30, "the first screen")
}
