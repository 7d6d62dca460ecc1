//go:build linux

package logindfake_test

import (
	"bufio"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubegrace/kubegrace/internal/logindfake"
)

const (
	login1        = "org.freedesktop.login1"
	login1Path    = dbus.ObjectPath("/org/freedesktop/login1")
	login1Manager = login1 + ".Manager"
)

// The kubelet's calls of logind (pkg/kubelet/nodeshutdown/systemd) work whatever feature the broker lacks: they read the
// limit, reload logind, take a lock, and receive an announcement. The two features that concern file descriptors are not
// left out, because the kubelet needs them.
func TestTheKubeletsCallsWork(t *testing.T) {
	all := slices.DeleteFunc(logindfake.Lacks(), func(l logindfake.Lack) bool {
		return l == logindfake.LackAgreement || l == logindfake.LackAnswer
	})
	tests := map[string][]logindfake.Lack{"nothing": nil, "all": all}
	for _, lack := range all {
		tests[string(lack)] = []logindfake.Lack{lack}
	}
	for name, lacks := range tests {
		t.Run(name, func(t *testing.T) {
			broker := logindfake.StartBroker(t, lacks...)
			hungUp := make(chan struct{}, 1)
			broker.Systemd1.OnHangUp(func() { hungUp <- struct{}{} })
			bus, err := dbus.Connect(broker.Address)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, bus.Close()) })
			logind := bus.Object(login1, login1Path)

			limit, err := logind.GetProperty(login1Manager + ".InhibitDelayMaxUSec")
			require.NoError(t, err)
			require.Equal(t, uint64(5_000_000), limit.Value()) // microseconds: the default of 5 s
			systemd := bus.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
			require.NoError(t, systemd.CallWithContext(t.Context(), "org.freedesktop.systemd1.Manager.KillUnit", 0, "systemd-logind.service", "all", int32(unix.SIGHUP)).Err)
			<-hungUp

			var lock dbus.UnixFD
			require.NoError(t, logind.CallWithContext(t.Context(), login1Manager+".Inhibit", 0, "shutdown", "kubelet", "why", "delay").Store(&lock))
			require.Equal(t, "kubelet", broker.Login1.Held()[0].Who)
			require.NoError(t, bus.AddMatchSignalContext(t.Context(), dbus.WithMatchInterface(login1Manager), dbus.WithMatchMember("PrepareForShutdown"), dbus.WithMatchObjectPath(login1Path)))
			signals := make(chan *dbus.Signal, 1)
			bus.Signal(signals)
			broker.Login1.Prepare(true)
			require.Equal(t, []any{true}, (<-signals).Body)
			require.NoError(t, unix.Close(int(lock)))
			<-broker.Login1.Locks()[0].Released
		})
	}
}

// For each feature, a broker that lacks it refuses the call that needs it, and a complete broker accepts the call.
func TestEachLackIsMissing(t *testing.T) {
	property := func(name string) func(*testing.T, *dbus.Conn) error {
		return func(_ *testing.T, bus *dbus.Conn) error {
			_, err := bus.Object(login1, login1Path).GetProperty(login1Manager + "." + name)
			return err
		}
	}
	method := func(service, path, name string, args ...any) func(*testing.T, *dbus.Conn) error {
		return func(t *testing.T, bus *dbus.Conn) error {
			return bus.Object(service, dbus.ObjectPath(path)).CallWithContext(t.Context(), name, 0, args...).Err
		}
	}
	busMethod := func(name string, args ...any) func(*testing.T, *dbus.Conn) error {
		return method("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus."+name, args...)
	}
	for lack, try := range map[logindfake.Lack]func(*testing.T, *dbus.Conn) error{
		logindfake.LackAgreement: func(_ *testing.T, bus *dbus.Conn) error {
			if !bus.SupportsUnixFDs() {
				return dbus.ErrMsgUnknownMethod
			}
			return nil
		},
		logindfake.LackOwner:        busMethod("GetNameOwner", login1),
		logindfake.LackOwnerChanges: busMethod("AddMatch", "type='signal',interface='org.freedesktop.DBus',member='NameOwnerChanged'"),
		logindfake.LackMatches:      busMethod("AddMatch", "type='signal',sender='"+login1+"'"),
		logindfake.LackProcessIDs:   busMethod("GetConnectionUnixProcessID", login1),
		logindfake.LackMetadata:     busMethod("AddMatch", "type='signal',member='PrepareForShutdownWithMetadata'"),
		logindfake.LackPreparing:    property("PreparingForShutdown"),
		logindfake.LackList:         method(login1, string(login1Path), login1Manager+".ListInhibitors"),
	} {
		t.Run(string(lack), func(t *testing.T) {
			for _, lacks := range [][]logindfake.Lack{nil, {lack}} {
				bus, err := dbus.Connect(logindfake.StartBroker(t, lacks...).Address)
				require.NoError(t, err)
				err = try(t, bus)
				require.NoError(t, bus.Close())
				hasLack, isRefused := len(lacks) > 0, err != nil
				require.Equal(t, hasLack, isRefused, "%v", err)
			}
		})
	}
}

// A client sends the lines of a handshake. A complete broker answers every line. A broker that lacks a feature of the
// handshake does not answer the last line. A broker with LackConnections serves one client at a time, so it does not
// answer a second client at all.
func TestLacksOfTheHandshake(t *testing.T) {
	for lack, handshake := range map[logindfake.Lack]string{
		logindfake.LackOtherHandshakes: "\x00AUTH EXTERNAL 30\r\n",
		logindfake.LackAnswer:          "\x00AUTH EXTERNAL 30\r\nNEGOTIATE_UNIX_FD\r\n",
		logindfake.LackConnections:     "\x00AUTH\r\n",
	} {
		t.Run(string(lack), func(t *testing.T) {
			for _, lacks := range [][]logindfake.Lack{nil, {lack}} {
				broker := logindfake.StartBroker(t, lacks...)
				path := strings.TrimPrefix(broker.Address, "unix:path=")
				first, err := net.Dial("unix", path)
				require.NoError(t, err)
				second := first
				if lack == logindfake.LackConnections {
					second, err = net.Dial("unix", path)
					require.NoError(t, err)
				}
				_, err = second.Write([]byte(handshake))
				require.NoError(t, err)
				answers := bufio.NewReader(second)
				require.NoError(t, second.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
				for range strings.Count(handshake, "\n") {
					if err == nil {
						_, err = answers.ReadString('\n')
					}
				}
				hasLack, lacksAnAnswer := len(lacks) > 0, err != nil
				require.Equal(t, hasLack, lacksAnAnswer)
				require.NoError(t, second.Close())
				_ = first.Close() // it may be the second
			}
		})
	}
}

// A test closes the broker of StartBroker early. Clients cannot connect any more. A second Close, such as that of
// StartBroker at the end of the test, does nothing.
func TestCloseMayBeCalledTwice(t *testing.T) {
	broker := logindfake.StartBroker(t)
	require.NoError(t, broker.Close())
	require.NoError(t, broker.Close())
	_, err := dbus.Connect(broker.Address)
	require.Error(t, err)
}
