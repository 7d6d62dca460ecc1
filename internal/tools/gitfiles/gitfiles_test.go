package gitfiles

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestList(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	require.NoError(t, os.MkdirAll(filepath.Join(root, "a b"), 0o700))
	for _, name := range []string{"new", "a b/tracked.go", "a b/removed.go", "top.go", "x.out"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), nil, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, ".gitignore"), []byte("*.out\n"), 0o600))
	git("init", "-q")
	git("add", "a b")
	require.NoError(t, os.Remove(filepath.Join(root, "a b/removed.go")))

	got, err := List(t.Context(), root)
	require.NoError(t, err)
	require.Equal(t, []string{".gitignore", "a b/tracked.go", "new", "top.go"}, got)
	got, err = List(t.Context(), root, "*.go")
	require.NoError(t, err)
	require.Equal(t, []string{"a b/tracked.go", "top.go"}, got)

	_, err = List(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "failed to list the files of")
	require.ErrorContains(t, err, "not a git repository")
	_, err = List(t.Context(), filepath.Join(root, "none"))
	require.ErrorContains(t, err, "failed to list the files of")
}
