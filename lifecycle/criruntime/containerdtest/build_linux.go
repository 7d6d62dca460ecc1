package containerdtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubegrace/kubegrace/internal/need"
)

// variable is the environment variable with the folder of the newer containerds. Each is
// in a subfolder called after its minor version.
const variable = "KUBEGRACE_CONTAINERD"

// Build is a containerd that can be started. The zero value is the one in PATH, which is
// that of the Debian package.
type Build struct {
	folder string // of its programs; "": they are in PATH
}

// Each runs a test as subtests with the containerd of the Debian package, with 2.3 and
// with 2.4. The subtest of one that is missing is skipped.
func Each(t *testing.T, test func(*testing.T, Build)) {
	t.Helper()
	t.Run("containerd of PATH", func(t *testing.T) { test(t, Build{}) })
	t.Run("containerd 2.3", func(t *testing.T) { test(t, V23(t)) })
	t.Run("containerd 2.4", func(t *testing.T) { test(t, V24(t)) })
}

// V23 is containerd 2.3, the long-term release. Unlike 1.6 it sends events
// (GetContainerEvents) and the stop signal of the pod's spec (KEP-4960), and answers the
// stop of an unknown container without an error. The test is skipped if it is missing.
func V23(t testing.TB) Build {
	t.Helper()
	return newerBuild(t, "2.3")
}

// V24 is containerd 2.4. Unlike 2.3 it streams lists (KEP-5825). The test is skipped if it
// is missing.
func V24(t testing.TB) Build {
	t.Helper()
	return newerBuild(t, "2.4")
}

func newerBuild(t testing.TB, version string) Build {
	t.Helper()
	return Build{folder: filepath.Join(need.Variable(t, variable, "make containerd"), version)}
}

// environment returns the environment of containerd, which finds its shim in PATH.
func (b Build) environment() []string {
	if b.folder == "" {
		return os.Environ()
	}
	return append(os.Environ(), "PATH="+b.folder+string(os.PathListSeparator)+os.Getenv("PATH"))
}
