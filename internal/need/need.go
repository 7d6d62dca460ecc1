// Package need is for tests that need a program, an environment variable or root. If it is
// missing, the test is skipped, and the text says how to get it. If the environment
// variable KUBEGRACE_NEED_ALL is 1, as in CI, the test fails instead, so that no test is
// skipped unnoticed.
//
// With go test -short, as in make test, all these tests are skipped, so that it needs Go alone and does
// the same on every machine. Long tests are skipped too, or do less: each says so by [Long] or [Less].
// make test lists what was left out.
package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// All is the environment variable that turns skips into failures when it is 1.
const All = "KUBEGRACE_NEED_ALL"

// Program returns the path of a program, or skips the test with the name of the Debian
// package that has the program. name may be a path.
func Program(t testing.TB, name, debianPackage string) string {
	t.Helper()
	Long(t, "what needs "+filepath.Base(name))
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, "needs "+name+" (Debian package "+debianPackage+")")
	}
	return path
}

// Variable returns the value of an environment variable, or skips the test with by, the
// command of this repository that sets the variable.
func Variable(t testing.TB, name, by string) string {
	t.Helper()
	Long(t, "what needs "+by)
	value := os.Getenv(name)
	if value == "" {
		missing(t, "needs "+name+" ("+by+")")
	}
	return value
}

// Root skips the test unless it runs as root.
func Root(t testing.TB) {
	t.Helper()
	Long(t, "what needs root")
	if os.Geteuid() != 0 {
		missing(t, "needs to run as root")
	}
}

// leftOut begins the text of what go test -short leaves out. The Makefile looks for it.
const leftOut = "left to make check: "

// Long skips the test under go test -short. what says in a few words what the test is.
func Long(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip(leftOut + what)
	}
}

// Less reports whether the test is to do less, as under go test -short. what says in a few words what
// it leaves out then.
func Less(t testing.TB, what string) bool {
	t.Helper()
	if testing.Short() {
		t.Log(leftOut + what)
	}
	return testing.Short()
}

// missing skips the test, or fails it if nothing may be skipped.
func missing(t testing.TB, text string) {
	t.Helper()
	if os.Getenv(All) == "1" {
		t.Fatal(text + "; " + All + "=1 lets nothing be skipped")
	}
	t.Skip(text)
}
