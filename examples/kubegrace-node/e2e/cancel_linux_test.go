//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

const (
	// capFile limits logind's delay to 6 s. Its name sorts after that of the agent's drop-in, so its limit overrides the
	// agent's.
	capFile = "/etc/systemd/logind.conf.d/zzzz-cap.conf"
	capText = "[Login]\nInhibitDelayMaxSec=6\n"

	// blocker is a unit whose start job is irreversible: no other job may replace it while it runs. So logind cannot
	// start the job of a power off, and cancels the shutdown. systemd 252 has no other way to cancel a shutdown.
	blocker     = "blocker.service"
	blockerUnit = "[Service]\nType=oneshot\nExecStart=/bin/sleep 100\n"
)

// logind waits for 6 s, which is less than the agent's schedule needs, and then cancels the shutdown because of the
// blocker. The agent must drain its pods in these 6 s, and take a new delay lock when the shutdown is cancelled. At the
// next power off it must release the new lock, so that logind does not wait for nothing.
func TestPowerOffAfterACancelledOneIsDelayedAgain(t *testing.T) {
	eachPlatform(t, func(t *testing.T, on platform) {
		m, server, containers := bootAgent(t, on, map[string]string{capFile: capText, "/etc/systemd/system/" + blocker: blockerUnit})
		awaitStatus(t, m, "limit lowered before kubegrace-node starts (c)")

		// A power off is asked for, which logind will cancel because of the blocker.
		asked := time.Now()
		m.Run(t, "systemctl", "start", "--no-block", "--job-mode=replace-irreversibly", blocker)
		m.Run(t, "busctl", "call", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "PowerOff", "b", "false")
		exits := awaitExits(t, server, containers)
		require.Less(t, exits.lastExit().Sub(asked), 10*time.Second, "the schedule of 38 s is shortened to 6 s, and each container has at least 2 s")

		// logind cancels it.
		awaitCancellation(t, m)
		awaitStatus(t, m, "shutdown cancelled at its limit")

		// Without the blocker the next power off succeeds.
		m.Run(t, "systemctl", "cancel") // cancels the blocker's job; systemctl stop would be refused, as every new job is
		powerOff(t, m, server, containers)
	})
}

// A shutdown is cancelled after the first bucket has ended, which systemd 257 allows and systemd 252 does not. logind
// sends no signal about the cancellation, so the agent must poll. The pods of later buckets, which were not yet told to
// stop, must keep running, and stop at the next power off.
func TestCancellationDuringADrainIsNoticed(t *testing.T) {
	t.Parallel()
	m, server, containers := bootAgent(t, newestPlatform(t), nil)

	m.Run(t, "systemctl", "poweroff")
	awaitExits(t, server, selectContainers(containers, nginx...)) // the first bucket

	// While the second bucket stops, which is stubborn and takes 4 s, the shutdown is cancelled.
	require.Equal(t, "b true", m.Run(t, "busctl", "call", "org.freedesktop.login1", "/org/freedesktop/login1",
		"org.freedesktop.login1.Manager", "CancelScheduledShutdown"))
	awaitCancellation(t, m)
	require.Eventually(t, func() bool { return lastReport(t, m).Cancelled }, 20*time.Second, 200*time.Millisecond)

	// The containers of the later buckets keep running until the next power off.
	running := runningContainers(t, server)
	for _, name := range []string{database, orders, proxy, network} {
		require.Equal(t, containers[name], running[name], name)
	}
	awaitStatus(t, m, "shutdown cancelled in a drain")

	powerOff(t, m, server, containers)
}

// awaitCancellation returns when logind no longer prepares for a shutdown and the agent holds a new delay lock.
func awaitCancellation(t *testing.T, m *machine.Machine) {
	t.Helper()
	require.Eventually(t, func() bool {
		preparing := m.Run(t, "busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "PreparingForShutdown")
		return preparing == "b false" && delaysShutdowns(t, m)
	}, 20*time.Second, 200*time.Millisecond)
}

// delaysShutdowns asks logind whether the agent holds a delay lock.
func delaysShutdowns(t *testing.T, m *machine.Machine) bool {
	t.Helper()
	return strings.Contains(m.Run(t, "systemd-inhibit", "--list", "--no-legend"), "kubegrace-node")
}
