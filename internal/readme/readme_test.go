package readme_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program at the top of the README is a part of examples/processagent, which has a test that
// builds and runs it. The program fits on the first screen.
func TestProgram(t *testing.T) {
	text := readme(t)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1)
	require.Len(t, blocks, 1)
	program, err := os.ReadFile("../../examples/processagent/main.go")
	require.NoError(t, err)
	require.Contains(t, string(program), blocks[0][1])
	before, _, found := strings.Cut(text, "\n## ")
	require.True(t, found)
	require.LessOrEqual(t, strings.Count(before, "\n"), 30, "the first screen")
}
