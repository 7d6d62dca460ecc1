package inspect_test

import (
	"bufio"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/internal/need"
)

// startBus starts a system bus with a fake systemd-logind, whose limit for locks is a number of
// microseconds. DBUS_SYSTEM_BUS_ADDRESS leads to it until the end of the test.
func startBus(t *testing.T, microseconds uint64) {
	t.Helper()
	program := need.Program(t, "dbus-daemon", "dbus")
	daemon := exec.CommandContext(t.Context(), program, "--session", "--nofork", "--print-address=1")
	out, err := daemon.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, daemon.Start())
	t.Cleanup(func() { _ = daemon.Wait() }) // the end of the context has killed it, which is an error
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", strings.TrimSpace(address))

	bus, err := dbus.Connect(strings.TrimSpace(address))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bus.Close()) })
	_, err = prop.Export(bus, "/org/freedesktop/login1", prop.Map{"org.freedesktop.login1.Manager": {"InhibitDelayMaxUSec": {Value: microseconds}}})
	require.NoError(t, err)
	reply, err := bus.RequestName("org.freedesktop.login1", dbus.NameFlagDoNotQueue)
	require.NoError(t, err)
	require.Equal(t, dbus.RequestNameReplyPrimaryOwner, reply)
}

func TestLimitOfLogind(t *testing.T) {
	for name, test := range map[string]struct {
		microseconds uint64
		want         string
	}{
		"5s":       {5_000_000, "but waits for 5s only"},
		"none":     {0, "but waits for 0s only"},
		"for ever": {math.MaxUint64, "how long it waits is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			startBus(t, test.microseconds)
			require.Contains(t, run(t, "kind: Pod\n", "--agent", "kubegrace", "--shutdown-grace-period", "30s", "--limit", "logind").out, test.want)
		})
	}
}

func TestLimitOfLogindWithoutABus(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus")
	r := run(t, "kind: Pod\n", "--limit", "logind")
	require.ErrorContains(t, r.err, "--limit: failed to reach the system bus")
}

// Looking changes nothing: a logind that does not run is not started.
func TestNothingIsStarted(t *testing.T) {
	data, root := t.TempDir(), t.TempDir()
	started := filepath.Join(data, "started")
	require.NoError(t, os.MkdirAll(filepath.Join(data, "dbus-1/services"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(data, "dbus-1/services/org.freedesktop.login1.service"),
		[]byte("[D-BUS Service]\nName=org.freedesktop.login1\nExec=/usr/bin/touch "+started+"\n"), 0o600))
	t.Setenv("XDG_DATA_HOME", data)
	daemon := exec.CommandContext(t.Context(), need.Program(t, "dbus-daemon", "dbus"), "--session", "--nofork", "--print-address=1")
	out, err := daemon.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, daemon.Start())
	t.Cleanup(func() { _ = daemon.Wait() }) // the end of the context has killed it, which is an error
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	r := run(t, "", "status", "--root", root, "--bus", strings.TrimSpace(address))
	require.ErrorIs(t, r.err, inspect.ExitStatus(4))
	require.Contains(t, r.out, "systemd-logind does not run")
	require.NoFileExists(t, started)
}
