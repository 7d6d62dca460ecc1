package containerdtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubegrace/kubegrace/internal/need"
)

// Variable is the environment variable that names the folder of the further containerds,
// each in a folder called after its minor version.
const Variable = "KUBEGRACE_CONTAINERD"

// Build is a containerd that can be started. The zero value is that of the Debian
// package, which is in PATH.
type Build struct {
	folder string // of its programs; "": they are in PATH
}

// Each runs a test with the containerd of the Debian package, with 2.2 and with 2.4, as
// subtests. One that is missing has its subtest skipped.
func Each(t *testing.T, test func(*testing.T, Build)) {
	t.Helper()
	t.Run("containerd of PATH", func(t *testing.T) { test(t, Build{}) })
	t.Run("containerd 2.2", func(t *testing.T) { test(t, V22(t)) })
	t.Run("containerd 2.4", func(t *testing.T) { test(t, V24(t)) })
}

// V22 is containerd 2.2, which unlike 1.6 sends events (GetContainerEvents) and answers
// the stop of an unknown container without an error. The test is skipped where it is missing.
func V22(t testing.TB) Build {
	t.Helper()
	return minor(t, "2.2")
}

// V24 is containerd 2.4, which sends the stop signal of the pod's spec (KEP-4960). The test
// is skipped where it is missing.
func V24(t testing.TB) Build {
	t.Helper()
	return minor(t, "2.4")
}

func minor(t testing.TB, version string) Build {
	t.Helper()
	return Build{folder: filepath.Join(need.Variable(t, Variable, "make containerd"), version)}
}

// environment is that of containerd, which looks for its shim in PATH.
func (b Build) environment() []string {
	if b.folder == "" {
		return os.Environ()
	}
	return append(os.Environ(), "PATH="+b.folder+string(os.PathListSeparator)+os.Getenv("PATH"))
}
