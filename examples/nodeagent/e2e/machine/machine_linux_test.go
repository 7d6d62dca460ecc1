//go:build e2e

package machine_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/nodeagent/e2e/machine"
)

// holdUnit takes a delay lock as an agent does, and holds it for some time after the
// shutdown was announced. logind's limit, here, is its own: 5 s.
const holdUnit = `[Unit]
After=dbus.service systemd-logind.service
[Service]
Type=notify
NotifyAccess=all
ExecStart=systemd-inhibit --what=shutdown --mode=delay --who=hold --why=test /usr/local/bin/hold
`

const holdScript = `#!/bin/sh
systemd-notify --ready
preparing() {
	busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager PreparingForShutdown
}
while [ "$(preparing)" != "b true" ]; do sleep 0.1; done
echo preparing
sleep SECONDS
echo released
`

// hold gives the journal of a machine that was powered off while the lock was held.
func hold(t *testing.T, seconds string) []machine.Entry {
	m := machine.New(t)
	m.WriteFile(t, "/usr/local/bin/hold", 0o755, []byte(strings.ReplaceAll(holdScript, "SECONDS", seconds)))
	m.Enable(t, "hold.service", []byte(holdUnit))
	m.Boot(t)
	m.AwaitActive(t, "hold.service")
	require.Contains(t, m.Run(t, "systemd-inhibit", "--list"), "hold")
	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
	return m.Journal(t)
}

// when gives the time of the first entry that is asked for.
func when(t *testing.T, entries []machine.Entry, what string, is func(machine.Entry) bool) time.Time {
	t.Helper()
	i := slices.IndexFunc(entries, is)
	require.GreaterOrEqual(t, i, 0, what)
	return entries[i].Time
}

func isMessage(text string) func(machine.Entry) bool {
	return func(e machine.Entry) bool { return strings.Contains(e.Message, text) }
}

func isShuttingDown(e machine.Entry) bool { return e.MessageID == machine.ShuttingDown }

func TestPowerOffWaitsForADelayLock(t *testing.T) {
	t.Parallel()
	entries := hold(t, "2")
	announced := when(t, entries, "announced", isMessage("preparing"))
	released := when(t, entries, "released", isMessage("released"))
	shutdown := when(t, entries, "shutdown", isShuttingDown)
	require.GreaterOrEqual(t, shutdown.Sub(announced), 2*time.Second)
	require.False(t, shutdown.Before(released))
	require.False(t, slices.ContainsFunc(entries, isMessage("Delay lock is active")))
}

func TestPowerOffDoesNotWaitForALockForEver(t *testing.T) {
	t.Parallel()
	entries := hold(t, "1000")
	announced := when(t, entries, "announced", isMessage("preparing"))
	shutdown := when(t, entries, "shutdown", isShuttingDown)
	require.InDelta(t, 5, shutdown.Sub(announced).Seconds(), 2)
	require.True(t, slices.ContainsFunc(entries, isMessage("Delay lock is active")), "a lock that is left is to be seen")
}

// That no process is left is seen by its cgroups, whose removal the end of the test
// insists on.
func TestAMachineThatIsLeftRunningIsKilled(t *testing.T) {
	var folder string
	t.Run("machine", func(t *testing.T) {
		m := machine.New(t)
		m.Boot(t)
		m.AwaitActive(t, "multi-user.target")
		require.Equal(t, "running", m.Run(t, "systemctl", "is-system-running", "--wait"))
		folder = t.TempDir()
	})
	require.NoDirExists(t, folder)
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), "TestAMachineThatIsLeftRunning")
}
