package containerdtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubegrace/kubegrace/internal/need"
)

// variable is the environment variable with the folder of the newer containerds. Each has a subfolder named
// after its minor version.
const variable = "KUBEGRACE_CONTAINERD"

// Build is a version of containerd. The zero value is the one in PATH, from the Debian package.
type Build struct {
	folder string // the folder of its programs; "": PATH
}

// Each runs a test as parallel subtests, one for each containerd: Debian's, 2.3 and 2.4. It skips missing ones.
func Each(t *testing.T, test func(*testing.T, Build)) {
	t.Helper()
	for name, build := range map[string]func(testing.TB) Build{
		"containerd of PATH": func(testing.TB) Build { return Build{} },
		"containerd 2.3":     V23,
		"containerd 2.4":     V24,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, build(t))
		})
	}
}

// V23 is containerd 2.3, a long-term release. Unlike 1.6 it has GetContainerEvents and the stop signal of the
// pod's spec (KEP-4960), and StopContainer of an unknown container returns no error. V23 skips the test if
// it is missing.
func V23(t testing.TB) Build {
	t.Helper()
	return newerBuild(t, "2.3")
}

// V24 is containerd 2.4. Unlike 2.3 it streams lists (KEP-5825). V24 skips the test if it is missing.
func V24(t testing.TB) Build {
	t.Helper()
	return newerBuild(t, "2.4")
}

// newerBuild returns the containerd of a minor version that "make containerd" has built. If it is missing, the
// test is skipped.
func newerBuild(t testing.TB, version string) Build {
	t.Helper()
	return Build{folder: filepath.Join(need.Variable(t, variable, "make containerd"), version)}
}

// environment returns the environment for containerd. The build's folder is first in PATH, so that
// containerd finds the shim of its own version there.
func (b Build) environment() []string {
	if b.folder == "" {
		return os.Environ()
	}
	return append(os.Environ(), "PATH="+b.folder+string(os.PathListSeparator)+os.Getenv("PATH"))
}
