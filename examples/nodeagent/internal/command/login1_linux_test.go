package command_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

const (
	login1Path    = dbus.ObjectPath("/org/freedesktop/login1")
	login1Manager = "org.freedesktop.login1.Manager"
	busConfig     = `<busconfig><type>system</type><listen>unix:path=SOCKET</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>`
)

// login1 plays logind on a bus of its own. It delays a shutdown for a minute.
type login1 struct {
	address string // of the bus
	conn    *dbus.Conn
	props   *prop.Properties
	locks   chan inhibitorLock // that Inhibit has returned
}

// inhibitorLock is a pipe. Reading from it ends when the agent has closed its copy of the
// other end, and the test its own.
type inhibitorLock struct{ read, write *os.File }

// startLogin1 starts a D-Bus daemon and owns logind's name on its bus.
func startLogin1(t *testing.T) *login1 {
	t.Helper()
	daemon := need.Program(t, "dbus-daemon", "dbus")
	dir := t.TempDir()
	socket, config := filepath.Join(dir, "bus"), filepath.Join(dir, "bus.conf")
	require.NoError(t, os.WriteFile(config, []byte(strings.Replace(busConfig, "SOCKET", socket, 1)), 0o600))
	bus := exec.CommandContext(t.Context(), daemon, "--config-file="+config, "--nofork")
	require.NoError(t, bus.Start())
	t.Cleanup(func() { _ = bus.Wait() }) // it was killed with the test
	l := &login1{address: "unix:path=" + socket, locks: make(chan inhibitorLock, 8)}
	require.Eventually(t, func() (up bool) {
		var err error
		l.conn, err = dbus.Connect(l.address)
		return err == nil
	}, 10*time.Second, 5*time.Millisecond, "the bus does not come up")
	t.Cleanup(func() { require.NoError(t, l.conn.Close()) })
	require.NoError(t, l.conn.Export(l, login1Path, login1Manager))
	var err error
	l.props, err = prop.Export(l.conn, login1Path, prop.Map{login1Manager: {
		"InhibitDelayMaxUSec":  {Value: uint64(time.Minute / time.Microsecond), Emit: prop.EmitFalse},
		"PreparingForShutdown": {Value: false, Writable: true, Emit: prop.EmitFalse},
	}})
	require.NoError(t, err)
	reply, err := l.conn.RequestName("org.freedesktop.login1", dbus.NameFlagDoNotQueue)
	require.NoError(t, err)
	require.Equal(t, dbus.RequestNameReplyPrimaryOwner, reply)
	return l
}

// Inhibit is the method of logind that returns a lock.
func (l *login1) Inhibit(_, _, _, _ string) (dbus.UnixFD, *dbus.Error) {
	read, write, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	l.locks <- inhibitorLock{read, write}
	return dbus.UnixFD(write.Fd()), nil
}

// waitReleased waits until the agent has released its lock. The agent must have received
// the lock, because waitReleased closes the copy of the test.
func (l *login1) waitReleased(t *testing.T) {
	t.Helper()
	lock := <-l.locks
	require.NoError(t, lock.write.Close())
	require.NoError(t, lock.read.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err := io.ReadAll(lock.read)
	require.NoError(t, err, "the lock is still held")
	require.NoError(t, lock.read.Close())
}

// announce announces a shutdown of the machine.
func (l *login1) announce(t *testing.T) {
	t.Helper()
	l.props.SetMust(login1Manager, "PreparingForShutdown", true)
	require.NoError(t, l.conn.Emit(login1Path, login1Manager+".PrepareForShutdown", true))
}

// announceKind announces a shutdown as a newer logind does, which names its kind.
func (l *login1) announceKind(t *testing.T, kind string) {
	t.Helper()
	metadata := map[string]dbus.Variant{"type": dbus.MakeVariant(kind)}
	l.props.SetMust(login1Manager, "PreparingForShutdown", true)
	require.NoError(t, l.conn.Emit(login1Path, login1Manager+".PrepareForShutdownWithMetadata", true, metadata))
	require.NoError(t, l.conn.Emit(login1Path, login1Manager+".PrepareForShutdown", true))
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
	host.announce(t)
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
	require.Empty(t, host.locks, "no lock was taken")
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, left, "no file was written")
}

// systemd1 plays systemd. It records the signals that it is asked to send.
type systemd1 struct{ sent chan int32 }

// KillUnit is the method of systemd that sends a signal to a unit.
func (s systemd1) KillUnit(_, _ string, signal int32) *dbus.Error {
	s.sent <- signal
	return nil
}

// startSystemd plays systemd on the bus, and returns the signals that it is asked to send.
func (l *login1) startSystemd(t *testing.T) <-chan int32 {
	t.Helper()
	s := systemd1{sent: make(chan int32, 8)}
	require.NoError(t, l.conn.Export(s, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"))
	_, err := l.conn.RequestName("org.freedesktop.systemd1", dbus.NameFlagDoNotQueue)
	require.NoError(t, err)
	return s.sent
}
