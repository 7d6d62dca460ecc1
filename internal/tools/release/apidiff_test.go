package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPIWithoutATag(t *testing.T) {
	out, err := runRelease(t, "apidiff", "--root", commit(t, ready()))
	require.NoError(t, err)
	require.Contains(t, out, "example.com/x: no tag yet: nothing to compare with\n")
	require.Contains(t, out, "example.com/x/sub: no tag yet: nothing to compare with\n")
}

// published returns a repository whose last tags are those of v0.2.0. The changelog has no section
// above that of v0.2.0, except what a test adds.
func published(t *testing.T) (root string) {
	t.Helper()
	files := ready()
	files["go.mod"] = "module example.com/x\n\ngo 1.25.0\n"
	root = commit(t, files)
	git(t, root, "tag", "v0.1.0")
	git(t, root, "tag", "v0.2.0")
	git(t, root, "tag", "sub/v0.2.0")
	return root
}

func TestAPIThatIsTheSame(t *testing.T) {
	root := published(t)
	write(t, root, "internal/a/a.go", "package a\n\n// B is new, and nobody's business.\nconst B = 1\n")
	out, err := runRelease(t, "apidiff", "--root", root)
	require.NoError(t, err)
	require.Contains(t, out, "example.com/x: its API is that of v0.2.0\n")
	require.Contains(t, out, "example.com/x/sub: its API is that of v0.2.0\n")
}

func TestAPIThatGrows(t *testing.T) {
	root := published(t)
	write(t, root, "sub/more.go", "package sub\n\n// More is new.\nconst More = 1\n")
	out, err := runRelease(t, "apidiff", "--root", root)
	require.NoError(t, err)
	require.Contains(t, out, "example.com/x/sub: its API differs from that of v0.2.0\nCompatible changes:\n- More: added\n")
	require.Contains(t, out, "example.com/x: its API is that of v0.2.0\n")
}

func TestAPIThatBreaksMustBeAnnounced(t *testing.T) {
	root := published(t)
	write(t, root, "metrics/count.go", "package metrics\n\n// Count counts.\nfunc Count() int64 { return 1 }\n")
	const differs = "example.com/x: its API differs from that of v0.2.0\nIncompatible changes:\n- ./metrics.Count: changed from func() int to func() int64\n"
	out, err := runRelease(t, "apidiff", "--root", root)
	require.EqualError(t, err, `example.com/x breaks importers of v0.2.0: revert that, or say "Breaking:" and what to do in `+changelogFile)
	require.Contains(t, out, differs)

	write(t, root, changelogFile, "## [Unreleased]\n\n- Breaking: Count gives an int64.\n\n"+ready()[changelogFile])
	out, err = runRelease(t, "apidiff", "--root", root)
	require.NoError(t, err)
	require.Contains(t, out, differs)
}

func TestAPIThatDoesNotCompile(t *testing.T) {
	root := published(t)
	write(t, root, "metrics/count.go", "package metrics\n\nfunc Count() int {\n")
	_, err := runRelease(t, "apidiff", "--root", root)
	require.ErrorContains(t, err, "count.go:3")
}
