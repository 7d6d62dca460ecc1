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

// Each release of Debian boots, without a failed unit and with the expected systemd. The subtests leave their machines
// running, to test the cleanup. The cleanup fails if processes are left in the cgroups, and after it no disk may exist
// or be mounted. make e2e runs this test first, so that the download from Debian's archive does not count in the
// timeouts of other tests.
func TestEachReleaseBoots(t *testing.T) {
	for debian, version := range map[machine.Debian]string{machine.Bookworm: "systemd 252 ", machine.Trixie: "systemd 257 "} {
		var folder string
		t.Run(string(debian), func(t *testing.T) {
			m := machine.New(t, debian)
			m.Boot(t)
			m.AwaitActive(t, "multi-user.target")
			require.Contains(t, m.Run(t, "systemctl", "--version"), version)
			require.Equal(t, "running", m.Run(t, "systemctl", "is-system-running", "--wait"))
			folder = t.TempDir() // beside the folder of the machine's disk
		})
		require.NoDirExists(t, folder)
		mounts, err := os.ReadFile("/proc/self/mounts")
		require.NoError(t, err)
		require.NotContains(t, string(mounts), filepath.Dir(folder))
	}
}

// holdUnit is a unit that takes a delay lock and never releases it.
const holdUnit = `[Unit]
After=dbus.service systemd-logind.service
[Service]
Type=exec
ExecStart=systemd-inhibit --what=shutdown --mode=delay --who=hold --why=test sleep infinity
`

// A delay lock is never released. logind must proceed with the power off after its default limit of 5 s, and log
// "Delay lock is active". The tests of the agent rely on that entry to detect a lock that was not released.
func TestPowerOffWaitsForALockNoLongerThanTheLimit(t *testing.T) {
	for _, debian := range []machine.Debian{machine.Bookworm, machine.Trixie} {
		t.Run(string(debian), func(t *testing.T) {
			t.Parallel()
			m := machine.New(t, debian)
			m.Enable(t, "hold.service", []byte(holdUnit))
			m.Boot(t)
			m.AwaitActive(t, "hold.service")
			require.Eventually(t, func() bool {
				return strings.Contains(m.Run(t, "systemd-inhibit", "--list"), "hold")
			}, 10*time.Second, 100*time.Millisecond)
			asked := time.Now()
			m.Run(t, "systemctl", "poweroff")
			m.AwaitPowerOff(t)
			entries := m.Journal(t)
			shutdown := slices.IndexFunc(entries, func(e machine.Entry) bool { return e.MessageID == machine.ShuttingDown })
			require.GreaterOrEqual(t, shutdown, 0, "logind logs the shutdown")
			require.InDelta(t, 5, entries[shutdown].Time.Sub(asked).Seconds(), 2, "logind's default limit in seconds")
			require.True(t, slices.ContainsFunc(entries, func(e machine.Entry) bool { return strings.Contains(e.Message, "Delay lock is active") }))
		})
	}
}
