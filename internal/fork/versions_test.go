package fork

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// versions returns the folders with files for a fork.
func versions() []string { return []string{"v1.32", "v1.37"} }

// goCommand runs the go command in a folder. env is added to the environment.
func goCommand(t *testing.T, folder string, env []string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = folder
	command.Env = append(append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "GOTOOLCHAIN=auto"), env...)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s: go %s\n%s", folder, strings.Join(args, " "), output)
}

// The files of each version pass their tests, which include the kubelet's own cases, on this machine. The files and tests also
// compile for Windows.
func TestEachVersionBuildsAndPasses(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			goCommand(t, version, []string{}, "test", "./...")
			goCommand(t, version, []string{"GOOS=windows"}, "vet", "./...")
		})
	}
}

// isCopied reports whether a fork copies a file. Other files only declare what a fork has. The path is relative, because the
// folder of this repository may have "kubegrace" in its name too.
func isCopied(path string) bool {
	return strings.Contains(path, "kubegrace") && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
}

// Each file that a fork of the kubelet copies has the licence header that Kubernetes requires, and is named in
// SERIES.md.
func TestCopiedFilesHaveALicenceAndAPlaceOnThePage(t *testing.T) {
	page, err := os.ReadFile("SERIES.md")
	require.NoError(t, err)
	header, err := os.ReadFile("v1.32/pkg/kubelet/kubegrace/gates.go")
	require.NoError(t, err)
	header, _, found := bytes.Cut(header, []byte("*/\n"))
	require.True(t, found)
	require.Contains(t, string(header), "Copyright The kubegrace Authors")
	for _, version := range versions() {
		require.NoError(t, filepath.WalkDir(version, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !isCopied(path) {
				return err
			}
			data, err := os.ReadFile(path)
			require.True(t, bytes.HasPrefix(data, header), path)
			require.Contains(t, string(page), strings.TrimPrefix(path, version+"/"))
			return err
		}))
	}
}

// Of the files that a fork of the kubelet copies, only those with "kubegrace_version" in their names differ between the
// versions. In v1.37 the others are links to those of v1.32.
func TestOnlyVersionedFilesDiffer(t *testing.T) {
	require.NoError(t, filepath.WalkDir("v1.32", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isCopied(path) {
			return err
		}
		require.True(t, entry.Type().IsRegular(), path)
		other, err := os.Lstat(filepath.Join("v1.37", strings.TrimPrefix(path, "v1.32")))
		require.NoError(t, err)
		require.Equal(t, strings.Contains(path, "kubegrace_version"), other.Mode().IsRegular(), other.Name())
		return nil
	}))
}
