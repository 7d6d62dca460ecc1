package containerdtest

import (
	"os"
	"testing"

	"github.com/kubegrace/kubegrace/internal/need"
)

// Variable is the variable of the environment that holds the folder of a second
// containerd.
const Variable = "KUBEGRACE_CONTAINERD"

// Build is a containerd that can be started. The zero value is that of the Debian
// package, which is in PATH.
type Build struct {
	folder string // of its programs; "": they are in PATH
}

// Each runs a test with the containerd of the Debian package and with the one that
// [Variable] names, as subtests. One that is missing has its subtest skipped.
func Each(t *testing.T, test func(*testing.T, Build)) {
	t.Helper()
	t.Run("containerd of PATH", func(t *testing.T) { test(t, Build{}) })
	t.Run("containerd of "+Variable, func(t *testing.T) { test(t, Newer(t)) })
}

// Newer is the containerd that [Variable] names. The test is skipped where it is missing.
func Newer(t testing.TB) Build {
	t.Helper()
	return Build{folder: need.Variable(t, Variable, "make containerd")}
}

// environment is that of containerd, which looks for its shim in PATH.
func (b Build) environment() []string {
	if b.folder == "" {
		return os.Environ()
	}
	return append(os.Environ(), "PATH="+b.folder+string(os.PathListSeparator)+os.Getenv("PATH"))
}
