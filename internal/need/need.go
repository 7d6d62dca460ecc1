// Package need skips tests whose requirement is missing: a program, an environment variable or root. The
// skip message tells how to get it. If the environment variable KUBEGRACE_NEED_ALL is 1, as in CI, the test
// fails instead.
//
// With go test -short, as in make test, these tests are always skipped, so that make test needs only Go. Long
// tests are skipped too, or do less ([Long], [Shortened]). make test lists what was skipped. The race detector makes
// tests several times slower, so that [Shortened] applies there too; make race then runs those tests in full without it.
package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// All is the environment variable that turns skips into failures when it is 1.
const All = "KUBEGRACE_NEED_ALL"

// Program returns the path of a program. If the program is missing, it skips the test, or fails it if
// KUBEGRACE_NEED_ALL is 1, with the name of the program's Debian package. It also skips the test under go test
// -short. name may be a path.
func Program(t testing.TB, name, debianPackage string) string {
	t.Helper()
	Long(t, "what needs "+filepath.Base(name))
	path, err := exec.LookPath(name)
	if err != nil {
		skipOrFail(t, "needs "+name+" (Debian package "+debianPackage+")")
	}
	return path
}

// Variable returns the value of an environment variable that a command of this repository sets, such as make dist. If it is
// empty, Variable skips the test, or fails it if KUBEGRACE_NEED_ALL is 1, with the command in the message. It also skips
// the test under go test -short.
func Variable(t testing.TB, name, command string) string {
	t.Helper()
	Long(t, "what needs "+command)
	value := os.Getenv(name)
	if value == "" {
		skipOrFail(t, "needs "+name+" ("+command+")")
	}
	return value
}

// Root skips the test unless it runs as root, or fails it if KUBEGRACE_NEED_ALL is 1. It also skips the test under go
// test -short.
func Root(t testing.TB) {
	t.Helper()
	Long(t, "what needs root")
	if os.Geteuid() != 0 {
		skipOrFail(t, "needs to run as root")
	}
}

// leftOut is the prefix of the messages about what go test -short skips. The Makefile searches for it.
const leftOut = "left to make check: "

// Long skips the test under go test -short. what describes the test in a few words.
func Long(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip(leftOut + what)
	}
}

// Shortened reports whether the test should do less, because of go test -short or the race detector. what describes what
// the test leaves out if so.
func Shortened(t testing.TB, what string) (isShortened bool) {
	t.Helper()
	isShortened = testing.Short() || raceDetector
	if isShortened {
		t.Log(leftOut + what)
	}
	return isShortened
}

// skipOrFail skips the test, or fails it if KUBEGRACE_NEED_ALL is 1.
func skipOrFail(t testing.TB, text string) {
	t.Helper()
	if os.Getenv(All) == "1" {
		t.Fatal(text + "; " + All + "=1 forbids skipping")
	}
	t.Skip(text)
}
