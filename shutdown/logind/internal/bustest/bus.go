//go:build linux

package bustest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

// config is a bus on which everybody may do everything, as far as the daemon is
// concerned: a forged signal reaches its victim.
const config = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>ADDRESS</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow send_type="signal"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
`

// Bus is a dbus-daemon on a socket of its own.
type Bus struct {
	Address string

	t      testing.TB
	socket string
	config string
	daemon *exec.Cmd
}

// StartBus starts a dbus-daemon that listens at socket until the test ends; "":
// at one that is free.
func StartBus(t testing.TB, socket string) *Bus {
	t.Helper()
	return startBus(t, socket, config)
}

func startBus(t testing.TB, socket, config string) *Bus {
	t.Helper()
	if socket == "" { // the test's own directory may be too long for a socket
		dir, err := os.MkdirTemp("", "bus")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
		socket = filepath.Join(dir, "socket")
	}
	b := &Bus{t: t, socket: socket, Address: "unix:path=" + socket, config: config}
	b.Start()
	t.Cleanup(b.Stop)
	return b
}

// Start starts the daemon again after [Bus.Stop].
func (b *Bus) Start() {
	b.t.Helper()
	program := need.Program(b.t, "dbus-daemon", "dbus-daemon")
	file := filepath.Join(b.t.TempDir(), "bus.conf")
	require.NoError(b.t, os.WriteFile(file, []byte(strings.Replace(b.config, "ADDRESS", b.Address, 1)), 0o600))
	b.daemon = exec.Command(program, "--config-file="+file, "--nofork", "--nopidfile", "--print-address")
	out, err := b.daemon.StdoutPipe()
	require.NoError(b.t, err)
	b.daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // no signals from the terminal
	require.NoError(b.t, b.daemon.Start())
	_, err = bufio.NewReader(out).ReadString('\n') // it listens when it says where
	require.NoError(b.t, err)
}

// Stop kills the daemon: every connection to it is lost.
func (b *Bus) Stop() {
	if b.daemon == nil {
		return
	}
	_ = b.daemon.Process.Kill() // it may be dead already
	_ = b.daemon.Wait()         // killed: never nil
	b.daemon = nil
	_ = os.Remove(b.socket) // a daemon that was killed leaves it
}

// Pause lets the daemon answer nothing any more; Stop ends that too.
func (b *Bus) Pause() {
	b.t.Helper()
	require.NoError(b.t, b.daemon.Process.Signal(syscall.SIGSTOP))
}

// Connect gives a connection that is closed when the test ends.
func (b *Bus) Connect() *dbus.Conn {
	b.t.Helper()
	c, err := dbus.Connect(b.Address)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = c.Close() }) // it may be closed, or its bus gone
	return c
}
