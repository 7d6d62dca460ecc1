package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCopyRepository(t *testing.T) {
	root, into := t.TempDir(), t.TempDir()
	git := func(args ...string) {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	git("init", "-q")
	require.NoError(t, write(filepath.Join(root, "a b", "ü"), map[string][]byte{"tracked": []byte("old"), "gone": nil}))
	git("add", ".")
	require.NoError(t, write(filepath.Join(root, "a b", "ü"), map[string][]byte{"tracked": []byte("new"), "other": []byte("untracked")}))
	require.NoError(t, os.Remove(filepath.Join(root, "a b", "ü", "gone")))
	require.NoError(t, write(root, map[string][]byte{".gitignore": []byte("*.out\n"), "c.out": nil, "run": nil}))
	require.NoError(t, os.Chmod(filepath.Join(root, "run"), 0o555))
	require.NoError(t, os.Symlink("run", filepath.Join(root, "link")))

	require.NoError(t, copyRepository(t.Context(), root, into))
	for name, want := range map[string]string{"a b/ü/tracked": "new", "a b/ü/other": "untracked", ".gitignore": "*.out\n", "run": ""} {
		got, err := os.ReadFile(filepath.Join(into, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	require.NoFileExists(t, filepath.Join(into, "a b/ü/gone"))
	require.NoFileExists(t, filepath.Join(into, "c.out"))
	require.NoDirExists(t, filepath.Join(into, ".git"))
	info, err := os.Stat(filepath.Join(into, "run"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode().Perm(), "writable, so that the folder can be removed")
	target, err := os.Readlink(filepath.Join(into, "link"))
	require.NoError(t, err)
	require.Equal(t, "run", target)
}

func TestAnEmptyRepository(t *testing.T) {
	root, into := t.TempDir(), t.TempDir()
	require.NoError(t, exec.CommandContext(t.Context(), "git", "-C", root, "init", "-q").Run())
	require.NoError(t, copyRepository(t.Context(), root, into))
	requireEmpty(t, into)
}
