//go:build linux

package bustest

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
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubegrace/kubegrace/internal/need"
)

const (
	// systemConfig is the configuration of the system bus, as distributions ship it.
	systemConfig = "/usr/share/dbus-1/system.conf"
	// nobody is a user with no rights of its own.
	nobody = 65534
)

// LookAlike is a name that begins as logind's does. On [StartSystemBus] everybody may
// own it, as some service's policy may allow.
const LookAlike = login1 + ".Manager"

// notOurs are the parts of that configuration which belong to the host's own bus: its
// user, its files, its way of starting and what an administrator has added.
var notOurs = regexp.MustCompile(`(?s)<!--.*?-->|<(user|pidfile|listen|servicehelper|include|includedir)\b[^>]*>[^<]*</\w+>|<(fork|syslog|standard_system_servicedirs)/>`)

// StartSystemBus is [StartBus] with the distribution's own policy: root alone may be
// logind, and everybody may send signals to everybody.
func StartSystemBus(t testing.TB) *Bus {
	t.Helper()
	need.Root(t)
	content, err := os.ReadFile(systemConfig)
	require.NoError(t, err)
	ours := "<listen>ADDRESS</listen>" +
		"<includedir>" + filepath.Join(filepath.Dir(systemConfig), "system.d") + "</includedir>" +
		`<policy context="default"><allow own="` + LookAlike + `"/></policy>` +
		"</busconfig>"
	config := strings.Replace(notOurs.ReplaceAllString(string(content), ""), "</busconfig>", ours, 1)
	b := startBus(t, "", config)
	require.NoError(t, os.Chmod(filepath.Dir(b.socket), 0o711))
	return b
}

// ConnectAsNobody gives a connection of a user who is not root, and the way beneath
// it. It passes no descriptors.
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

// ConnectAsNobodyWithDescriptors is the same with descriptors.
func (b *Bus) ConnectAsNobodyWithDescriptors() *dbus.Conn {
	b.t.Helper()
	return b.asNobody(func() (*dbus.Conn, error) { return dbus.Dial(b.Address) })
}

// asNobody connects in a thread of another user, which is what the kernel tells the
// bus, and closes the connection when the test ends.
func (b *Bus) asNobody(dial func() (*dbus.Conn, error)) *dbus.Conn {
	b.t.Helper()
	var bus *dbus.Conn
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			failed <- errno
			return
		}
		var err error
		if bus, err = dial(); err == nil {
			err = bus.Auth(nil)
		}
		if err == nil {
			err = bus.Hello()
		}
		failed <- err
	}()
	require.NoError(b.t, <-failed)
	b.t.Cleanup(func() { _ = bus.Close() }) // it may be closed, or its bus gone
	return bus
}
