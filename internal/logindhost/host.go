//go:build linux

package logindhost

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/kubegrace/kubegrace/internal/logindfake"
)

const (
	logindProgram = "/lib/systemd/systemd-logind"
	socket        = "/run/dbus/system_bus_socket"
	login1        = "org.freedesktop.login1"
	login1Path    = dbus.ObjectPath("/org/freedesktop/login1")
	login1Manager = login1 + ".Manager"
	// startTimeout is how long a test waits for the start of logind, and for its reload after a SIGHUP.
	startTimeout = 10 * time.Second
)

// Host is a real systemd-logind on its own bus, with empty /run and /etc/systemd. It requires
// [InNamespace].
type Host struct {
	// Bus is the bus of the host.
	Bus *Bus
	// Systemd1 is the scripted systemd on the bus. RestartBus replaces it.
	Systemd1 *logindfake.Systemd1

	t    *testing.T
	conn *dbus.Conn

	mu     sync.Mutex
	logind *exec.Cmd
}

// StartHost starts the bus, the scripted systemd and logind. They end with the test. It mounts an empty /run and
// /etc/systemd in the test's namespace, so that logind neither finds nor changes files of the machine.
func StartHost(t *testing.T) *Host {
	t.Helper()
	if os.Getenv(insideVariable) == "" {
		t.Fatal("StartHost requires InNamespace")
	}
	for _, dir := range []string{"/run", "/etc/systemd"} {
		must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"))
		t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	}
	for _, dir := range []string{"inhibit", "seats", "sessions", "users", "shutdown"} {
		must(t, os.MkdirAll(filepath.Join("/run/systemd", dir), 0o755))
	}
	must(t, os.MkdirAll(filepath.Dir(socket), 0o755))
	h := &Host{t: t, Bus: StartBus(t, socket)}
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", h.Bus.Address)
	h.Systemd1 = logindfake.StartSystemd1(t, h.Bus.Address, h.HangUp)
	h.conn = h.Bus.Connect()
	h.Start()
	t.Cleanup(h.Kill)
	return h
}

// RestartBus kills logind, which needs the bus, stops the bus, and starts both again. The scripted systemd has lost its
// connection, so a new one takes its place.
func (h *Host) RestartBus() {
	h.t.Helper()
	h.Kill()
	h.Bus.Stop()
	h.Bus.Start()
	h.Systemd1 = logindfake.StartSystemd1(h.t, h.Bus.Address, h.HangUp)
	h.conn = h.Bus.Connect()
	h.Start()
}

// Pause suspends logind with SIGSTOP until resume is called.
func (h *Host) Pause() (resume func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	logind := h.logind.Process
	must(h.t, logind.Signal(syscall.SIGSTOP))
	return func() { must(h.t, logind.Signal(syscall.SIGCONT)) }
}

// Start starts logind and returns when it responds.
func (h *Host) Start() {
	h.t.Helper()
	logind := exec.Command(logindProgram)
	logind.Stderr = testWriter{h.t}
	must(h.t, logind.Start())
	h.mu.Lock()
	h.logind = logind
	h.mu.Unlock()
	await(h.t, func() bool {
		return h.conn.Object(login1, login1Path).CallWithContext(h.t.Context(), "org.freedesktop.DBus.Peer.Ping", 0).Err == nil
	})
}

// Kill kills logind and returns when it has exited. Its inhibitors stay on disk for the next logind.
func (h *Host) Kill() {
	h.mu.Lock()
	logind := h.logind
	h.logind = nil
	h.mu.Unlock()
	if logind == nil {
		return
	}
	_ = logind.Process.Kill() // may have exited already
	_ = logind.Wait()         // always an error, because it was killed
}

// HangUp sends SIGHUP to logind, which reloads its configuration some time later.
func (h *Host) HangUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.logind != nil {
		_ = h.logind.Process.Signal(syscall.SIGHUP) // may have exited
	}
}

// Call calls a method of logind's manager as root.
func (h *Host) Call(method string, args ...any) *dbus.Call {
	return h.conn.Object(login1, login1Path).CallWithContext(h.t.Context(), login1Manager+"."+method, 0, args...)
}

// PowerOff asks logind to power off.
func (h *Host) PowerOff() {
	h.t.Helper()
	const interactive = false // do not ask a user for permission
	must(h.t, h.Call("PowerOff", interactive).Err)
}

// Configure writes a file below /etc/systemd or /run, sends SIGHUP, and returns when logind's limit is want.
func (h *Host) Configure(path, content string, want time.Duration) {
	h.t.Helper()
	must(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(h.t, os.WriteFile(path, []byte(content), fs.FileMode(0o644)))
	h.HangUp()
	await(h.t, func() bool { return h.limit() == uint64(want/time.Microsecond) })
}

// limit returns logind's InhibitDelayMaxUSec, in microseconds.
func (h *Host) limit() uint64 {
	property, err := h.conn.Object(login1, login1Path).GetProperty(login1Manager + ".InhibitDelayMaxUSec")
	must(h.t, err)
	microseconds, _ := property.Value().(uint64)
	return microseconds
}

// Inhibitors returns the result of ListInhibitors.
func (h *Host) Inhibitors() []Inhibitor {
	h.t.Helper()
	var list []Inhibitor
	must(h.t, h.Call("ListInhibitors").Store(&list))
	return list
}

// Inhibitor is an entry of ListInhibitors. Its fields have the order of the reply.
type Inhibitor struct {
	// What, Who, Why and Mode are the arguments of Inhibit. UID and PID are those of its caller.
	What, Who, Why, Mode string
	UID, PID             uint32
}

// await calls isReady again and again until it returns true. If that takes longer than startTimeout, the test fails.
func await(t testing.TB, isReady func() bool) {
	t.Helper()
	for end := time.Now().Add(startTimeout); !isReady(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("systemd-logind did not reach the expected state in time")
		}
	}
}

// testWriter writes logind's standard error to the log of the test.
type testWriter struct{ t testing.TB }

// Write logs what logind has written.
func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("systemd-logind: %s", p)
	return len(p), nil
}
