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

	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

// holdUnit takes a delay lock as an agent does, and releases it some time after the
// shutdown was announced. logind has its default limit of 5 s.
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

// powerOffWithLock powers off a machine while a delay lock is held for some seconds, and
// returns the journal.
func powerOffWithLock(t *testing.T, debian machine.Debian, seconds string) []machine.Entry {
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

// timeOf returns the time of the first entry that matches.
func timeOf(t *testing.T, entries []machine.Entry, what string, matches func(machine.Entry) bool) time.Time {
	t.Helper()
	i := slices.IndexFunc(entries, matches)
	require.GreaterOrEqual(t, i, 0, what)
	return entries[i].Time
}

func isMessage(text string) func(machine.Entry) bool {
	return func(e machine.Entry) bool { return strings.Contains(e.Message, text) }
}

func isShuttingDown(e machine.Entry) bool { return e.MessageID == machine.ShuttingDown }

// eachRelease runs a test on both releases at the same time.
func eachRelease(t *testing.T, test func(t *testing.T, debian machine.Debian)) {
	t.Parallel()
	for _, debian := range []machine.Debian{machine.Bookworm, machine.Trixie} {
		t.Run(string(debian), func(t *testing.T) {
			t.Parallel()
			test(t, debian)
		})
	}
}

// make e2e runs this test first, so that the download from Debian's archive takes no time
// of other tests.
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

func TestPowerOffWaitsForADelayLock(t *testing.T) { eachRelease(t, testPowerOffWaitsForADelayLock) }

func testPowerOffWaitsForADelayLock(t *testing.T, debian machine.Debian) {
	entries := powerOffWithLock(t, debian, "2")
	announced := timeOf(t, entries, "announced", isMessage("preparing"))
	released := timeOf(t, entries, "released", isMessage("released"))
	shutdown := timeOf(t, entries, "shutdown", isShuttingDown)
	require.GreaterOrEqual(t, shutdown.Sub(announced), 2*time.Second-100*time.Millisecond) // the journal has the time of each line, which comes a little late
	require.False(t, shutdown.Before(released))
	require.False(t, slices.ContainsFunc(entries, isMessage("Delay lock is active")))
}

func TestPowerOffWaitsForALockNoLongerThanTheLimit(t *testing.T) {
	eachRelease(t, testPowerOffWaitsForALockNoLongerThanTheLimit)
}

func testPowerOffWaitsForALockNoLongerThanTheLimit(t *testing.T, debian machine.Debian) {
	entries := powerOffWithLock(t, debian, "1000")
	announced := timeOf(t, entries, "announced", isMessage("preparing"))
	shutdown := timeOf(t, entries, "shutdown", isShuttingDown)
	require.InDelta(t, 5, shutdown.Sub(announced).Seconds(), 2)
	require.True(t, slices.ContainsFunc(entries, isMessage("Delay lock is active")), "logind logs the lock that was not released")
}

// The cgroups of the machine show that all its processes are gone: the cleanup of the
// test fails if it cannot remove them.
func TestMachineThatIsLeftRunningIsKilled(t *testing.T) {
	eachRelease(t, testMachineThatIsLeftRunningIsKilled)
}

func testMachineThatIsLeftRunningIsKilled(t *testing.T, debian machine.Debian) {
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
	require.NotContains(t, string(mounts), filepath.Dir(folder), "the disk of the machine is not mounted any more")
}
