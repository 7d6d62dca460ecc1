//go:build linux

package logindhost

import (
	"flag"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/kubegrace/kubegrace/internal/need"
)

// insideVariable is set in the environment of the process in the namespaces.
const insideVariable = "KUBEGRACE_TEST_NAMESPACE"

// InNamespace runs the calling test again in a new process with its own mount and PID namespaces. The mounts and
// child processes of the new process end with it, even if it is killed. InNamespace returns true in the new process,
// which must run the test. In the original process it waits for the end of the new one and returns false:
//
//	if !logindhost.InNamespace(t) {
//		return
//	}
func InNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		return true
	}
	t.Parallel() // the new processes of several tests may run at the same time
	need.Root(t)
	need.Program(t, "dbus-daemon", "dbus-daemon")
	need.Program(t, logindProgram, "systemd")
	unshare := need.Program(t, "unshare", "util-linux")
	self, err := os.Executable()
	must(t, err)
	newProcess := exec.CommandContext(t.Context(), unshare, "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc",
		self, "-test.v", "-test.count=1", "-test.run="+pattern(t))
	newProcess.Env = append(os.Environ(), insideVariable+"=1")
	// The kernel sends Pdeathsig when the thread that started the process ends, so keep the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	newProcess.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := newProcess.CombinedOutput()
	if err != nil || testing.Verbose() {
		t.Logf("output of the test in its namespaces:\n%s", out)
	}
	must(t, err)
	return false
}

// pattern returns the value of -test.run for this test and its selected subtests.
func pattern(t *testing.T) string {
	_, subtests, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	if subtests == "" {
		return "^" + t.Name() + "$"
	}
	return "^" + t.Name() + "$/" + subtests
}
