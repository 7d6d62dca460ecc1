//go:build linux

package bustest

import (
	"flag"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

// inside marks the process that runs in the namespaces.
const inside = "KUBEGRACE_TEST_NAMESPACE"

// InNamespace runs a test again, in a process with mounts and processes of its
// own: whatever it mounts and starts there is gone when it ends, even if it is
// killed. It is true in that process, in which the test then does its work;
// outside it is false, after the work was done.
//
//	if !bustest.InNamespace(t) {
//		return
//	}
func InNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	t.Parallel() // it is another process that does the work
	need.Root(t)
	need.Program(t, "dbus-daemon", "dbus-daemon")
	need.Program(t, logindProgram, "systemd")
	unshare := need.Program(t, "unshare", "util-linux")
	self, err := os.Executable()
	require.NoError(t, err)
	again := exec.CommandContext(t.Context(), unshare, "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc",
		self, "-test.v", "-test.count=1", "-test.run="+pattern(t))
	again.Env = append(os.Environ(), inside+"=1")
	// The kernel kills it when the thread ends that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	again.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := again.CombinedOutput()
	if err != nil || testing.Verbose() {
		t.Logf("in its namespaces:\n%s", out)
	}
	require.NoError(t, err)
	return false
}

// pattern selects this test and, of its subtests, those that -run selects.
func pattern(t *testing.T) string {
	_, subtests, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	if subtests == "" {
		return "^" + t.Name() + "$"
	}
	return "^" + t.Name() + "$/" + subtests
}
