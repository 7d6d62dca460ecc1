package command_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/logind/logindtest"
)

// login1 is a scripted logind on a bus of its own.
type login1 struct {
	*logindtest.Login1
	address string // of the bus
}

// startLogin1 starts a logind that delays a shutdown for a minute.
func startLogin1(t *testing.T) login1 {
	t.Helper()
	bus := logindtest.StartBus(t, "")
	l := login1{logindtest.StartLogin1(t, bus.Address), bus.Address}
	l.SetLimit(time.Minute)
	return l
}

// waitReleased waits until the agent has released the lock that it has taken.
func (l login1) waitReleased(t *testing.T) {
	t.Helper()
	require.NotEmpty(t, l.Locks())
	require.Eventually(t, func() bool { return len(l.Held()) == 0 }, 20*time.Second, 5*time.Millisecond, "the lock is still held")
}

// startOnBus starts an agent that uses the bus of an address.
func startOnBus(t *testing.T, address string, args ...string) *process {
	t.Helper()
	dir := folder(t, map[string]string{
		"pods/pod.yaml": scripted("web", "exits 10ms after TERM"),
		"kubelet.yaml":  kubelet + "shutdownGracePeriod: 30s\n",
	})
	p := prepare(t, append([]string{"--manifests=" + dir + "/pods", "--config=" + dir + "/kubelet.yaml"}, args...)...)
	p.command.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+address)
	require.NoError(t, p.command.Start())
	return p
}

func TestAgentLeavesWithoutAShutdownOfLogind(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		host := startLogin1(t)
		p := startOnBus(t, host.address, "--source=logind")
		p.waitFor("1 of 1 pods run. They are stopped in order when this machine shuts down")
		p.waitFor("This machine's shutdown is held back for up to 1m0s (asked for: 32.5s).")
		p.signal(signal)
		require.Zero(t, p.waitExit())
		require.NotContains(t, p.out.String(), "stopped in time")
		host.waitReleased(t)
	}
}

func TestLogindShutsDown(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	p := startOnBus(t, host.address, "--source=logind")
	p.waitFor("This machine's shutdown is held back")
	p.waitFor("1 of 1 pods run.")
	host.Prepare(true)
	host.waitReleased(t)
	p.waitFor("1 of 1 pod stopped in time.")
	require.Zero(t, p.terminate())
}

func TestWithoutLogind(t *testing.T) {
	t.Parallel()
	const nowhere = "unix:path=/nonexistent/bus"
	p := startOnBus(t, nowhere, "--source=logind")
	require.Equal(t, 1, p.waitExit())
	require.Empty(t, p.out.String())
	require.Contains(t, p.stderr.String(), "nodeagent: --source=logind: logind is not to be reached: ")

	p = startOnBus(t, nowhere, "--source=auto", "--shutdown-after=1ms")
	require.Zero(t, p.waitExit())
	require.Contains(t, p.out.String(), "1 of 1 pod stopped in time.")
}

// With --source=auto an agent without real containers does not delay the shutdown of the
// machine.
func TestEmbeddedRuntimeDoesNotUseLogind(t *testing.T) {
	t.Parallel()
	host := startLogin1(t)
	root := t.TempDir()
	p := startOnBus(t, host.address, "--source=auto", "--host-root="+root)
	p.waitFor("1 of 1 pods run. They are stopped in order on SIGTERM")
	require.Zero(t, p.terminate())
	require.Contains(t, p.out.String(), "1 of 1 pod stopped in time.")
	require.Empty(t, host.Locks(), "no lock was taken")
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, left, "no file was written")
}
