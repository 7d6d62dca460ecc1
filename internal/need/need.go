// Package need lets a test say which real part it needs. On a machine without
// the part the test is skipped, with the Debian package that would bring it;
// where the environment variable KUBEGRACE_NEED_ALL is 1, as in CI, it fails
// instead, so that nothing is skipped unseen.
package need

import (
	"os"
	"os/exec"
	"testing"
)

// All is the environment variable that turns skips into failures when it is 1.
const All = "KUBEGRACE_NEED_ALL"

// Program gives the path of a program, or skips the test and names the Debian
// package that has it. name may be a path.
func Program(t testing.TB, name, debianPackage string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, "needs "+name+" (Debian package "+debianPackage+")")
	}
	return path
}

// Variable gives the value of a variable of the environment, or skips the test and says
// what would set it: a command of this repository.
func Variable(t testing.TB, name, by string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		missing(t, "needs "+name+" ("+by+")")
	}
	return value
}

// Root skips the test unless it runs as root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "needs to run as root")
	}
}

func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(All) == "1" {
		t.Fatal(what + "; " + All + "=1 lets nothing be skipped")
	}
	t.Skip(what)
}
