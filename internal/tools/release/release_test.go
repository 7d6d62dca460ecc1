package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ready returns the files of a repository that is ready for the release of v0.2.0.
func ready() map[string]string {
	return map[string]string{
		"LICENSE":              "Do what you want.\n",
		"README.md":            "Now v0.2.0.\n",
		changelogFile:          "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-22\n\n### Added\n\n- Breaking: all of it.\n\n## [0.1.0] - 2026-10-01\n\n- It is there.\n",
		"go.mod":               "module example.com/x\n\ngo 1.25.0\n\nrequire k8s.io/utils v0.0.0-20250604170112-4c0f3b243397\n",
		"metrics/doc.go":       "// Package metrics counts.\npackage metrics\n",
		"metrics/count.go":     "package metrics\n\n// Count counts.\nfunc Count() int { return 1 }\n",
		"metrics/show_test.go": "package metrics\n\nfunc Example() {}\n",
		"internal/a/a.go":      "package a\n",
		"sub/go.mod":           "module example.com/x/sub\n\ngo 1.25.0\n\nrequire example.com/x v0.2.0\n\nreplace example.com/x => ../\n",
		"sub/doc.go":           "// Package sub is below.\npackage sub\n",
		"sub/show_test.go":     "package sub\n\nfunc ExampleSub() {}\n",
		"examples/go.mod":      "module example.com/x/examples\n\ngo 1.25.0\n\nrequire example.com/x v0.0.1\n",
		"examples/a/main.go":   "package main\n",
		"internal/b/go.mod":    "module example.com/x/internal/b\n\ngo 1.25.0\n",
	}
}

// commit makes a git repository of files.
func commit(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, content := range files {
		write(t, root, name, content)
	}
	git(t, root, "init", "-q", "-b", "main")
	git(t, root, "add", "-A")
	git(t, root, "commit", "-q", "-m", "all")
	return root
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
}

// git runs git without the settings of whoever runs the test.
func git(t *testing.T, root string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v: %s", args, out)
}

// runRelease runs the program and returns its standard output.
func runRelease(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out, diagnostics strings.Builder
	err = release(t.Context(), args, &out, &diagnostics)
	return out.String(), err
}

func TestNothingIsMissing(t *testing.T) {
	root := commit(t, ready())
	git(t, root, "tag", "v0.1.0")
	git(t, root, "tag", "sub/v0.1.0")
	out, err := runRelease(t, "check", "--root", root, "v0.2.0")
	require.NoError(t, err, out)
	require.Equal(t, `Nothing is missing for v0.2.0. It is made by

    git tag -a -m v0.2.0 v0.2.0
    git tag -a -m v0.2.0 sub/v0.2.0
    git push origin v0.2.0 sub/v0.2.0

These modules get no tag:

    examples
    internal/b
`, out)
}

func TestMissing(t *testing.T) {
	for name, test := range map[string]struct {
		file, content string // content "" removes the file
		want          string
	}{
		"a licence":                    {"LICENSE", "", "LICENSE: is not there, or empty\n"},
		"the version in the README":    {"README.md", "Now v0.1.0.\n", "README.md: does not name v0.2.0\n"},
		"a section of the changelog":   {changelogFile, "## [Unreleased]\n\n- All.\n", changelogFile + ": what is unreleased must be moved into the section of v0.2.0\n" + changelogFile + ": has no section of v0.2.0: ## [0.2.0] - YYYY-MM-DD\n"},
		"a date":                       {changelogFile, "## [0.2.0]\n\n- All.\n", changelogFile + ": the section of v0.2.0 must have a date: ## [0.2.0] - YYYY-MM-DD\n"},
		"a true date":                  {changelogFile, "## [0.2.0] - 2026-02-30\n\n- All.\n", changelogFile + ": the section of v0.2.0 must have a date: ## [0.2.0] - YYYY-MM-DD\n"},
		"entries":                      {changelogFile, "## [0.2.0] - 2026-11-22\n", changelogFile + ": the section of v0.2.0 lists nothing\n"},
		"an Example":                   {"metrics/show_test.go", "package metrics\n\nimport \"testing\"\n\nfunc TestExample(*testing.T) {}\n", "metrics: has no Example\n"},
		"documentation":                {"sub/doc.go", "package sub\n", "sub: has no doc.go with the package's documentation\n"},
		"a requirement of ours":        {"sub/go.mod", "module example.com/x/sub\n\nrequire example.com/x v0.1.0\n\nreplace example.com/x => ../\n", "sub/go.mod: requires example.com/x v0.1.0; must be v0.2.0\n"},
		"a commit of ours":             {"sub/go.mod", "module example.com/x/sub\n\nrequire example.com/x v0.1.1-0.20250604170112-4c0f3b243397\n", "sub/go.mod: requires example.com/x v0.1.1-0.20250604170112-4c0f3b243397; must be v0.2.0\n"},
		"a module without tags":        {"go.mod", "module example.com/x\n\nrequire example.com/x/internal/b v0.2.0\n", "go.mod: requires example.com/x/internal/b, which has no tags\n"},
		"a commit between versions":    {"go.mod", "module example.com/x\n\nrequire k8s.io/api v0.34.2-0.20250604170112-4c0f3b243397\n", "go.mod: requires k8s.io/api v0.34.2-0.20250604170112-4c0f3b243397, which is between two versions\n"},
		"a replacement in the root":    {"go.mod", "module example.com/x\n\nreplace example.com/x/sub => ./sub\n", "go.mod: replaces example.com/x/sub, which is not so for importers\n"},
		"a replacement of others":      {"sub/go.mod", "module example.com/x/sub\n\nreplace k8s.io/api => k8s.io/api v0.34.0\n", "sub/go.mod: replaces k8s.io/api, which is not so for importers\n"},
		"an indirect commit is theirs": {"go.mod", "module example.com/x\n\nrequire k8s.io/api v0.34.2-0.20250604170112-4c0f3b243397 // indirect\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := ready()
			files[test.file] = test.content
			if test.content == "" {
				delete(files, test.file)
			}
			out, err := runRelease(t, "check", "--root", commit(t, files), "v0.2.0")
			if test.want == "" {
				require.NoError(t, err, out)
				return
			}
			require.ErrorContains(t, err, "missing for v0.2.0")
			require.Equal(t, test.want, out)
		})
	}
}

func TestWhatIsNotCommitted(t *testing.T) {
	root := commit(t, ready())
	write(t, root, "README.md", "Now v0.2.0!\n")
	write(t, root, "metrics/more.go", "package metrics\n")
	out, err := runRelease(t, "check", "--root", root, "v0.2.0")
	require.EqualError(t, err, "2 things are missing for v0.2.0")
	require.Equal(t, "README.md: is not committed\nmetrics/more.go: is not committed\n", out)
}

func TestTagsThatAreThere(t *testing.T) {
	root := commit(t, ready())
	for _, tag := range []string{"sub/v0.2.0", "v0.3.0", "examples/v0.1.0", "vinyl", "sub/vinyl/v0.9.0"} {
		git(t, root, "tag", tag)
	}
	out, err := runRelease(t, "check", "--root", root, "v0.2.0")
	require.EqualError(t, err, "3 things are missing for v0.2.0")
	for _, problem := range []string{
		"the tag sub/v0.2.0: is there already; a version that was published cannot be changed\n",
		"the tag v0.3.0: is a later version\n",
		"the tag examples/v0.1.0: this module is for this repository only and has no tags\n",
	} {
		require.Contains(t, out, problem)
	}
}

func TestArguments(t *testing.T) {
	root := commit(t, ready())
	for _, version := range []string{"", "0.2.0", "v0.2", "v2.0.0", "v0.2.0+x", "next"} {
		_, err := runRelease(t, "check", "--root", root, version)
		require.ErrorContains(t, err, "is not a version such as v0.1.0", version)
	}
	for _, args := range [][]string{{}, {"check", "--root", root}, {"apidiff", "--root", root, "v0.2.0"}, {"tag", "--root", root}} {
		_, err := runRelease(t, args...)
		require.Error(t, err, "%v", args)
	}
	_, err := runRelease(t, "check", "--root", t.TempDir(), "v0.2.0")
	require.ErrorContains(t, err, "failed to list the files of")
}
