//go:build e2e

package machine_test

import (
	"os"
	"path/filepath"
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
Type=exec
ExecStart=systemd-inhibit --what=shutdown --mode=delay --who=hold --why=test /usr/local/bin/hold
`

const holdScript = `#!/bin/sh
preparing() {
	busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager PreparingForShutdown
}
while [ "$(preparing)" != "b true" ]; do sleep 0.1; done
echo preparing
sleep SECONDS
echo released
`

// hold gives the journal of a machine that was powered off while the lock was held.
func hold(t *testing.T, debian machine.Debian, seconds string) []machine.Entry {
	m := machine.New(t, debian)
	m.WriteFile(t, "/usr/local/bin/hold", 0o755, []byte(strings.ReplaceAll(holdScript, "SECONDS", seconds)))
	m.Enable(t, "hold.service", []byte(holdUnit))
	m.Boot(t)
	m.AwaitActive(t, "hold.service")
	require.Eventually(t, func() bool {
		return strings.Contains(m.Run(t, "systemd-inhibit", "--list"), "hold")
	}, 10*time.Second, 100*time.Millisecond)
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

// each runs a test on each release, at the same time.
func each(t *testing.T, test func(t *testing.T, debian machine.Debian)) {
	t.Parallel()
	for _, debian := range []machine.Debian{machine.Bookworm, machine.Trixie} {
		t.Run(string(debian), func(t *testing.T) {
			t.Parallel()
			test(t, debian)
		})
	}
}

// TestEachReleaseBoots is run first by make e2e, so that what is fetched from Debian
// costs no other test its time.
func TestEachReleaseBoots(t *testing.T) {
	for debian, version := range map[machine.Debian]string{machine.Bookworm: "systemd 252 ", machine.Trixie: "systemd 257 "} {
		t.Run(string(debian), func(t *testing.T) {
			m := machine.New(t, debian)
			m.Boot(t)
			m.AwaitActive(t, "multi-user.target")
			require.Contains(t, m.Run(t, "systemctl", "--version"), version)
		})
	}
}

func TestPowerOffWaitsForADelayLock(t *testing.T) { each(t, testPowerOffWaitsForADelayLock) }

func testPowerOffWaitsForADelayLock(t *testing.T, debian machine.Debian) {
	entries := hold(t, debian, "2")
	announced := when(t, entries, "announced", isMessage("preparing"))
	released := when(t, entries, "released", isMessage("released"))
	shutdown := when(t, entries, "shutdown", isShuttingDown)
	require.GreaterOrEqual(t, shutdown.Sub(announced), 2*time.Second)
	require.False(t, shutdown.Before(released))
	require.False(t, slices.ContainsFunc(entries, isMessage("Delay lock is active")))
}

func TestPowerOffDoesNotWaitForALockForEver(t *testing.T) {
	each(t, testPowerOffDoesNotWaitForALockForEver)
}

func testPowerOffDoesNotWaitForALockForEver(t *testing.T, debian machine.Debian) {
	entries := hold(t, debian, "1000")
	announced := when(t, entries, "announced", isMessage("preparing"))
	shutdown := when(t, entries, "shutdown", isShuttingDown)
	require.InDelta(t, 5, shutdown.Sub(announced).Seconds(), 2)
	require.True(t, slices.ContainsFunc(entries, isMessage("Delay lock is active")), "a lock that is left is to be seen")
}

// That no process is left is seen by its cgroups, whose removal the end of the test
// insists on.
func TestAMachineThatIsLeftRunningIsKilled(t *testing.T) {
	each(t, testAMachineThatIsLeftRunningIsKilled)
}

func testAMachineThatIsLeftRunningIsKilled(t *testing.T, debian machine.Debian) {
	var folder string
	t.Run("machine", func(t *testing.T) {
		m := machine.New(t, debian)
		m.Boot(t)
		m.AwaitActive(t, "multi-user.target")
		require.Equal(t, "running", m.Run(t, "systemctl", "is-system-running", "--wait"))
		folder = t.TempDir()
	})
	require.NoDirExists(t, folder)
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), filepath.Dir(folder), "where the disk of the machine was")
}
