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

			// The kubelet reads the limit.
			logind := bus.Object(login1, login1Path)

			limit, err := logind.GetProperty(login1Manager + ".InhibitDelayMaxUSec")
			require.NoError(t, err)
			require.Equal(t, uint64(5_000_000), limit.Value()) // microseconds: the default of 5 s

			// It reloads logind.
			systemd := bus.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
			require.NoError(t, systemd.CallWithContext(t.Context(), "org.freedesktop.systemd1.Manager.KillUnit", 0, "systemd-logind.service", "all", int32(unix.SIGHUP)).Err)
			<-hungUp

			// It takes a lock.
			var lock dbus.UnixFD
			require.NoError(t, logind.CallWithContext(t.Context(), login1Manager+".Inhibit", 0, "shutdown", "kubelet", "why", "delay").Store(&lock))
			require.Equal(t, "kubelet", broker.Login1.Held()[0].Who)

			// It receives the announcement of a shutdown, and closes its lock.
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
				if isComplete := len(lacks) == 0; isComplete {
					require.NoError(t, err)
				} else {
					require.Error(t, err)
				}
			}
		})
	}
}

// A client sends the lines of a handshake. A complete broker answers every line. A broker that lacks a feature of the
// handshake does not answer the last line.
func TestLacksOfTheHandshake(t *testing.T) {
	for lack, handshake := range map[logindfake.Lack]string{
		logindfake.LackOtherHandshakes: "\x00AUTH EXTERNAL 30\r\n",
		logindfake.LackAnswer:          "\x00AUTH EXTERNAL 30\r\nNEGOTIATE_UNIX_FD\r\n",
	} {
		t.Run(string(lack), func(t *testing.T) {
			complete := dialBroker(t, logindfake.StartBroker(t))
			require.Equal(t, strings.Count(handshake, "\n"), countAnswers(t, complete, handshake))
			lacking := dialBroker(t, logindfake.StartBroker(t, lack))
			require.Equal(t, strings.Count(handshake, "\n")-1, countAnswers(t, lacking, handshake))
		})
	}
}

// A broker with LackConnections serves one client at a time, so it does not answer a second one. A complete broker does.
func TestLackConnectionsServesOneClient(t *testing.T) {
	for want, lacks := range map[int][]logindfake.Lack{1: nil, 0: {logindfake.LackConnections}} {
		broker := logindfake.StartBroker(t, lacks...)
		dialBroker(t, broker)
		second := dialBroker(t, broker)
		require.Equal(t, want, countAnswers(t, second, "\x00AUTH\r\n"))
	}
}

// dialBroker connects a client, until the test ends.
func dialBroker(t *testing.T, broker *logindfake.Broker) net.Conn {
	t.Helper()
	client, err := net.Dial("unix", strings.TrimPrefix(broker.Address, "unix:path="))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// countAnswers sends the lines of a handshake and returns how many lines are answered within 200 ms.
func countAnswers(t *testing.T, client net.Conn, handshake string) (answered int) {
	t.Helper()
	_, err := client.Write([]byte(handshake))
	require.NoError(t, err)
	require.NoError(t, client.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	answers := bufio.NewReader(client)
	for range strings.Count(handshake, "\n") {
		if _, err := answers.ReadString('\n'); err != nil {
			break
		}
		answered++
	}
	return answered
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
