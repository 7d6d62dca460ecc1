//go:build linux

package logindhost

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/internal/need"
)

// config is the configuration of a bus on which every user may own every name and send every message, so
// that forged signals are delivered.
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

// Bus is a dbus-daemon.
type Bus struct {
	// Address is the D-Bus address of the bus.
	Address string

	t      testing.TB
	socket string
	config string
	daemon *exec.Cmd
}

// NewSocket stands for a new socket in a temporary folder, in place of the path of a socket.
const NewSocket = ""

// StartBus starts a dbus-daemon that listens on this socket until the test ends. If socket is [NewSocket], the daemon listens on
// a new socket in a temporary folder.
func StartBus(t testing.TB, socket string) *Bus {
	t.Helper()
	return startBus(t, socket, config)
}

// startBus starts a dbus-daemon, as StartBus does, with this configuration, in which it replaces ADDRESS by the
// address of the bus.
func startBus(t testing.TB, socket, config string) *Bus {
	t.Helper()
	if socket == NewSocket { // the path of t.TempDir may be too long for a socket
		dir, err := os.MkdirTemp("", "bus")
		must(t, err)
		t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
		socket = filepath.Join(dir, "socket")
	}
	b := &Bus{t: t, socket: socket, Address: "unix:path=" + socket, config: config}
	b.Start()
	t.Cleanup(b.Stop)
	return b
}

// must fails the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Start starts the daemon, and returns when it listens. A test calls Start after [Bus.Stop].
func (b *Bus) Start() {
	b.t.Helper()
	program := need.Program(b.t, "dbus-daemon", "dbus-daemon")
	file := filepath.Join(b.t.TempDir(), "bus.conf")
	must(b.t, os.WriteFile(file, []byte(strings.Replace(b.config, "ADDRESS", b.Address, 1)), 0o600))
	b.daemon = exec.Command(program, "--config-file="+file, "--nofork", "--nopidfile", "--print-address")
	out, err := b.daemon.StdoutPipe()
	must(b.t, err)
	b.daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // do not receive signals from the terminal
	must(b.t, b.daemon.Start())
	_, err = bufio.NewReader(out).ReadString('\n') // the daemon prints its address when it listens
	must(b.t, err)
}

// Stop kills the daemon, which closes every connection to it.
func (b *Bus) Stop() {
	if b.daemon == nil {
		return
	}
	_ = b.daemon.Process.Kill() // may have exited already
	_ = b.daemon.Wait()         // always an error, because it was killed
	b.daemon = nil
	_ = os.Remove(b.socket) // a killed daemon does not remove its socket
}

// Pause suspends the daemon with SIGSTOP until [Bus.Stop].
func (b *Bus) Pause() {
	b.t.Helper()
	must(b.t, b.daemon.Process.Signal(syscall.SIGSTOP))
}

// Connect returns a connection that is closed when the test ends.
func (b *Bus) Connect() *dbus.Conn {
	b.t.Helper()
	c, err := dbus.Connect(b.Address)
	must(b.t, err)
	b.t.Cleanup(func() { _ = c.Close() }) // may be closed already
	return c
}

// Forge sends a signal to one connection, which receives it without a match rule. Every process on the
// system bus can do that.
func Forge(c *dbus.Conn, to, iface, name string, path dbus.ObjectPath, body ...any) {
	message := &dbus.Message{Type: dbus.TypeSignal, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldDestination: dbus.MakeVariant(to),
		dbus.FieldPath:        dbus.MakeVariant(path),
		dbus.FieldInterface:   dbus.MakeVariant(iface),
		dbus.FieldMember:      dbus.MakeVariant(name),
	}}
	if len(body) > 0 {
		message.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	c.Send(message, nil)
}
