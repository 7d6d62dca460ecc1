//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/nodeagent/e2e/machine"
)

const (
	// capFile sorts after the agent's own drop-in and keeps logind from waiting longer.
	capFile = "/etc/systemd/logind.conf.d/zzzz-cap.conf"
	capText = "[Login]\nInhibitDelayMaxSec=6\n"

	// While the job of this unit is waiting, no other job may take its place: logind
	// cannot start the power off, and cancels it. That is how one is had on systemd 252.
	blocker     = "blocker.service"
	blockerUnit = "[Service]\nType=oneshot\nExecStart=/bin/sleep 100\n"
)

// TestACancelledShutdownIsFollowedByOneThatIsDelayed has logind wait for less than the
// schedule, and cancel the shutdown in the end. The agent drains within that limit,
// holds the machine again, and lets it go down at the next power off.
func TestACancelledShutdownIsFollowedByOneThatIsDelayed(t *testing.T) {
	eachPlatform(t, testACancelledShutdownIsFollowedByOneThatIsDelayed)
}

func testACancelledShutdownIsFollowedByOneThatIsDelayed(t *testing.T, on platform) {
	m, server, containers := bootAgent(t, on, map[string]string{capFile: capText, "/etc/systemd/system/" + blocker: blockerUnit})

	asked := time.Now()
	m.Run(t, "systemctl", "start", "--no-block", "--job-mode=replace-irreversibly", blocker)
	m.Run(t, "busctl", "call", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "PowerOff", "b", "false")
	exits := recordsOf(t, server, containers)
	require.Less(t, exits.last().Sub(asked), 10*time.Second, "the schedule of 38 s was fitted to 6 s and the containers' floor")
	require.Eventually(t, func() bool { return !preparing(t, m) && held(t, m) }, 20*time.Second, 200*time.Millisecond)

	m.Run(t, "systemctl", "cancel") // a stop of the blocker would be refused like all else
	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
	for _, entry := range m.Journal(t) {
		require.NotContains(t, entry.Message, "Delay lock is active")
	}
}

// TestADelayedShutdownIsCancelled has logind cancel a shutdown while the pods are being
// stopped. Only systemd 257 can: it then tells nobody, and the agent has to look. The pods
// that had not been told to stop live on, until the power off that follows.
func TestADelayedShutdownIsCancelled(t *testing.T) {
	t.Parallel()
	m, server, containers := bootAgent(t, newest(t), nil)

	m.Run(t, "systemctl", "poweroff")
	recordsOf(t, server, only(containers, nginx...)) // the next bucket has 4 s to go
	require.Equal(t, "b true", m.Run(t, "busctl", "call", "org.freedesktop.login1", "/org/freedesktop/login1",
		"org.freedesktop.login1.Manager", "CancelScheduledShutdown"))
	require.Eventually(t, func() bool { return !preparing(t, m) && held(t, m) }, 20*time.Second, 200*time.Millisecond)
	require.Eventually(t, func() bool { return lastReport(t, m).Cancelled }, 20*time.Second, 200*time.Millisecond)
	running := runningContainers(t, server)
	for _, name := range []string{database, orders, proxy, network} {
		require.Equal(t, containers[name], running[name], "%s runs on", name)
	}

	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
	checkPowerOff(t, recordsOf(t, server, containers), m.Journal(t))
	require.Empty(t, runningContainers(t, server))
}

// preparing asks logind whether a shutdown is under way.
func preparing(t *testing.T, m *machine.Machine) bool {
	t.Helper()
	return m.Run(t, "busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1",
		"org.freedesktop.login1.Manager", "PreparingForShutdown") == "b true"
}

// held asks logind whether the agent delays shutdowns.
func held(t *testing.T, m *machine.Machine) bool {
	t.Helper()
	return strings.Contains(m.Run(t, "systemd-inhibit", "--list", "--no-legend"), "nodeagent")
}
