package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	bootTimeout  = 3 * time.Minute // long enough with many pods and other machines that boot at the same time
	pollInterval = 100 * time.Millisecond
	// runTimeout bounds one command in the machine.
	runTimeout = 30 * time.Second
)

// Run runs a command in the machine and returns its stdout without surrounding space. The test fails at once
// if the command fails. After systemctl poweroff it returns before the machine is off.
func (m *Machine) Run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := m.TryRun(t.Context(), args...)
	require.NoErrorf(t, err, "%v in the machine", args)
	return out
}

// TryRun runs a command in the namespaces of the machine's first process, and returns its stdout without
// surrounding space. Unlike [Machine.Run] it returns an error instead of failing the test.
func (m *Machine) TryRun(ctx context.Context, args ...string) (string, error) {
	leader, err := m.leader()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	nsenterArgs := append([]string{"--target", leader, "--mount", "--pid", "--uts", "--ipc", "--net", "--"}, args...)
	command := exec.CommandContext(ctx, "nsenter", nsenterArgs...)
	command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"} // not the host's environment
	out, err := command.Output()
	return strings.TrimSpace(string(out)), err
}

// leader returns the process ID that the machine's first process has on the host. It is the child of nspawn that
// is in another PID namespace than nspawn. A child that is still in nspawn's namespace does not count: a command
// such as systemctl poweroff, run in the namespaces of that child, would power off the host.
func (m *Machine) leader() (string, error) {
	pid := strconv.Itoa(m.nspawn.Process.Pid)
	children, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err != nil {
		return "", fmt.Errorf("failed to look for the machine: %w", err)
	}
	nspawnNamespace, err := namespaceOf(pid)
	if err != nil {
		return "", err
	}
	for child := range strings.FieldsSeq(string(children)) {
		if childNamespace, err := namespaceOf(child); err == nil && childNamespace != nspawnNamespace {
			return child, nil
		}
	}
	return "", errors.New("the machine has no process yet")
}

// namespaceOf returns the name of the PID namespace in which a process is.
func namespaceOf(pid string) (string, error) {
	name, err := os.Readlink(filepath.Join("/proc", pid, "ns", "pid"))
	if err != nil {
		return "", fmt.Errorf("failed to read the namespace of process %s: %w", pid, err)
	}
	return name, nil
}

// AwaitActive waits until a unit is active; one with Type=notify is active when it has sent READY=1. If the
// unit fails, the test fails at once and prints the unit's journal.
func (m *Machine) AwaitActive(t testing.TB, unit string) {
	t.Helper()
	m.AwaitInvocation(t, unit, "") // "": any start counts, also one before this call
}

// Invocation returns the invocation ID of a unit. systemd gives each start of a unit a
// new one.
func (m *Machine) Invocation(t testing.TB, unit string) string {
	t.Helper()
	return m.Run(t, "systemctl", "show", "--property=InvocationID", "--value", unit)
}

// AwaitInvocation waits until a unit has been started again: it is active, and its invocation ID is not previous.
// systemd may stop answering for a while, as it does in a soft reboot. The test fails if the unit fails, if the
// machine ends, or if the unit is not started again within bootTimeout.
func (m *Machine) AwaitInvocation(t testing.TB, unit, previous string) {
	t.Helper()
	timeout := time.After(bootTimeout)
	for {
		shown, _ := m.TryRun(t.Context(), "systemctl", "show", "--property=ActiveState,InvocationID", unit) // fails while the machine boots
		state, invocation := unitState(shown)
		switch state {
		case "active":
			if invocation != previous {
				return
			}
		case "failed":
			log, err := m.TryRun(t.Context(), "journalctl", "--unit", unit, "--no-pager", "--output=cat")
			require.FailNowf(t, "the unit failed", "%s: %s (%v)", unit, log, err)
		}
		select {
		case <-m.nspawnEnded:
			require.FailNowf(t, "the machine ended", "before %s was active: %v", unit, m.nspawnErr)
		case <-timeout:
			require.FailNowf(t, "the unit is not active", "%s: %q", unit, state)
		case <-time.After(pollInterval):
		}
	}
}

// unitState parses the lines NAME=VALUE of systemctl show.
func unitState(shown string) (state, invocation string) {
	for line := range strings.Lines(shown) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "ActiveState":
			state = value
		case "InvocationID":
			invocation = value
		}
	}
	return state, invocation
}
