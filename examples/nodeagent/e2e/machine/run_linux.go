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
	bootTimeout = 3 * time.Minute // many units, many pods, and other machines beside this one
	askEvery    = 100 * time.Millisecond
	// runTimeout bounds one command in the machine.
	runTimeout = 30 * time.Second
)

// Run runs a command in the machine and gives what it wrote to stdout; it must
// succeed. systemctl poweroff returns before the machine is off.
func (m *Machine) Run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := m.run(t.Context(), args...)
	require.NoErrorf(t, err, "%v in the machine", args)
	return out
}

// run is Run for a command that may fail.
func (m *Machine) run(ctx context.Context, args ...string) (string, error) {
	leader, err := m.leader()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	enter := append([]string{"--target", leader, "--mount", "--pid", "--uts", "--ipc", "--net", "--"}, args...)
	command := exec.CommandContext(ctx, "nsenter", enter...)
	command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"} // nothing of the host's
	out, err := command.Output()
	return strings.TrimSpace(string(out)), err
}

// leader gives the process ID, on the host, of the machine's first process: the child
// of nspawn that has left nspawn's namespace. What is run there could be a power off,
// so a process that is still outside of the machine does not count.
func (m *Machine) leader() (string, error) {
	pid := strconv.Itoa(m.nspawn.Process.Pid)
	children, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err != nil {
		return "", fmt.Errorf("failed to look for the machine: %w", err)
	}
	outside, err := namespaceOf(pid)
	if err != nil {
		return "", err
	}
	for child := range strings.FieldsSeq(string(children)) {
		if inside, err := namespaceOf(child); err == nil && inside != outside {
			return child, nil
		}
	}
	return "", errors.New("the machine has no process yet")
}

// namespaceOf names the namespace of processes that a process is in.
func namespaceOf(pid string) (string, error) {
	name, err := os.Readlink(filepath.Join("/proc", pid, "ns", "pid"))
	if err != nil {
		return "", fmt.Errorf("failed to read the namespace of process %s: %w", pid, err)
	}
	return name, nil
}

// AwaitActive waits until a unit is active, which for one of Type=notify means that
// it has said so. It ends the test when the unit fails, with the unit's journal.
func (m *Machine) AwaitActive(t testing.TB, unit string) {
	t.Helper()
	m.AwaitInvocation(t, unit, "")
}

// Invocation names this start of a unit: another start has another name.
func (m *Machine) Invocation(t testing.TB, unit string) string {
	t.Helper()
	return m.Run(t, "systemctl", "show", "--property=InvocationID", "--value", unit)
}

// AwaitInvocation is [Machine.AwaitActive] for a unit that is started again: it is
// active in another invocation than the former one. Meanwhile systemd may be away.
func (m *Machine) AwaitInvocation(t testing.TB, unit, former string) {
	t.Helper()
	timeout := time.After(bootTimeout)
	for {
		// It fails while the machine boots.
		shown, _ := m.run(t.Context(), "systemctl", "show", "--property=ActiveState,InvocationID", unit)
		state, invocation := unitState(shown)
		switch state {
		case "active":
			if invocation != former {
				return
			}
		case "failed":
			log, err := m.run(t.Context(), "journalctl", "--unit", unit, "--no-pager", "--output=cat")
			require.FailNowf(t, "the unit failed", "%s: %s (%v)", unit, log, err)
		}
		select {
		case <-m.ended:
			require.FailNowf(t, "the machine ended", "before %s was active: %v", unit, m.exit)
		case <-timeout:
			require.FailNowf(t, "the unit is not active", "%s: %q", unit, state)
		case <-time.After(askEvery):
		}
	}
}

// unitState reads the lines NAME=VALUE of systemctl show.
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
