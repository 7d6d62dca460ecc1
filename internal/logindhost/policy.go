//go:build linux

package logindhost

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/kubegrace/kubegrace/internal/need"
)

const (
	// systemConfig is the distribution's configuration of the system bus.
	systemConfig = "/usr/share/dbus-1/system.conf"
	// nobody is the ID of an unprivileged user.
	nobody = 65534
)

// LookAlike is a bus name with logind's name as a prefix. Every user may own it on the bus of
// [StartSystemBus].
const LookAlike = login1 + ".Manager"

// hostOnly matches the parts of systemConfig that a bus of a test must not have: the user it runs as, its files,
// how it starts other programs, and additions by an administrator.
var hostOnly = regexp.MustCompile(`(?s)<!--.*?-->|<(user|pidfile|listen|servicehelper|include|includedir)\b[^>]*>[^<]*</\w+>|<(fork|syslog|standard_system_servicedirs)/>`)

// StartSystemBus starts a dbus-daemon with the distribution's policy: only root may own logind's bus name, and every
// user may send signals to every other user. In addition every user may own [LookAlike]. The bus of [StartBus] has no
// such restriction.
func StartSystemBus(t testing.TB) *Bus {
	t.Helper()
	need.Root(t)
	content, err := os.ReadFile(systemConfig)
	must(t, err)
	// startBus replaces ADDRESS, and the last line ends the configuration.
	addition := "<listen>ADDRESS</listen>" +
		"<includedir>" + filepath.Join(filepath.Dir(systemConfig), "system.d") + "</includedir>" +
		`<policy context="default"><allow own="` + LookAlike + `"/></policy>` +
		"</busconfig>"
	config := strings.Replace(hostOnly.ReplaceAllString(string(content), ""), "</busconfig>", addition, 1)
	b := startBus(t, NewSocket, config)
	must(t, os.Chmod(filepath.Dir(b.socket), 0o711)) // so that the user nobody reaches the socket too
	return b
}

// ConnectAsNobody returns a connection of an unprivileged user, and its socket. The connection cannot pass
// file descriptors.
func (b *Bus) ConnectAsNobody() (*dbus.Conn, io.Writer) {
	b.t.Helper()
	var socket net.Conn
	bus := b.asNobody(func() (*dbus.Conn, error) {
		var err error
		if socket, err = net.Dial("unix", b.socket); err != nil {
			return nil, err
		}
		return dbus.NewConn(socket)
	})
	return bus, socket
}

// ConnectAsNobodyWithDescriptors returns a connection of an unprivileged user that can pass file descriptors.
func (b *Bus) ConnectAsNobodyWithDescriptors() *dbus.Conn {
	b.t.Helper()
	return b.asNobody(func() (*dbus.Conn, error) { return dbus.Dial(b.Address) })
}

// asNobody calls dial in a thread that runs as nobody, because the bus gets the user of a connection from the
// kernel. The connection is closed when the test ends.
func (b *Bus) asNobody(dial func() (*dbus.Conn, error)) *dbus.Conn {
	b.t.Helper()
	var bus *dbus.Conn
	connected := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with this goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			connected <- errno
			return
		}
		var err error
		if bus, err = dial(); err == nil {
			err = bus.Auth(nil)
		}
		if err == nil {
			err = bus.Hello()
		}
		connected <- err
	}()
	must(b.t, <-connected)
	b.t.Cleanup(func() { _ = bus.Close() }) // may be closed already
	return bus
}
