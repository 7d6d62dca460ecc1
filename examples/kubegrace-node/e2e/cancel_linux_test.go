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
	// The name of capFile sorts after that of the agent's drop-in, so this limit wins.
	capFile = "/etc/systemd/logind.conf.d/zzzz-cap.conf"
	capText = "[Login]\nInhibitDelayMaxSec=6\n"

	// blocker is started with a job that no other job may replace. logind then fails to
	// start the power off and cancels it. systemd 252 has no other way to cancel one.
	blocker     = "blocker.service"
	blockerUnit = "[Service]\nType=oneshot\nExecStart=/bin/sleep 100\n"
)

// logind waits for less than the schedule needs, and then cancels the shutdown. The agent
// drains its pods within that limit, takes a new delay lock, and releases it at the next
// power off.
func TestPowerOffAfterACancelledOneIsDelayedAgain(t *testing.T) {
	eachPlatform(t, testPowerOffAfterACancelledOneIsDelayedAgain)
}

func testPowerOffAfterACancelledOneIsDelayedAgain(t *testing.T, on platform) {
	m, server, containers := bootAgent(t, on, map[string]string{capFile: capText, "/etc/systemd/system/" + blocker: blockerUnit})

	awaitRow(t, m, "limit lowered before kubegrace-node starts (c)")
	asked := time.Now()
	m.Run(t, "systemctl", "start", "--no-block", "--job-mode=replace-irreversibly", blocker)
	m.Run(t, "busctl", "call", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "PowerOff", "b", "false")
	exits := awaitExits(t, server, containers)
	require.Less(t, exits.lastExit().Sub(asked), 10*time.Second, "the schedule of 38 s was fitted to 6 s and the containers' floor")
	awaitCancellation(t, m)
	awaitRow(t, m, "shutdown cancelled at its limit")

	m.Run(t, "systemctl", "cancel") // stopping the blocker would be refused, as every job is
	again := time.Now()             // the pods of the first power off need all of the 6 s, and a busy machine a little more
	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
	for _, entry := range m.Journal(t) {
		require.False(t, entry.Time.After(again) && strings.Contains(entry.Message, "Delay lock is active"), entry.Message)
	}
}

// A shutdown is cancelled while pods are being stopped. Only systemd 257 can do that. It
// sends no signal then, so the agent has to ask. Pods that were not told to stop keep
// running, until the power off that follows.
func TestCancellationDuringADrainIsNoticed(t *testing.T) {
	t.Parallel()
	m, server, containers := bootAgent(t, newestPlatform(t), nil)

	m.Run(t, "systemctl", "poweroff")
	awaitExits(t, server, selectContainers(containers, nginx...)) // the pod of the next bucket takes 4 s to stop
	require.Equal(t, "b true", m.Run(t, "busctl", "call", "org.freedesktop.login1", "/org/freedesktop/login1",
		"org.freedesktop.login1.Manager", "CancelScheduledShutdown"))
	awaitCancellation(t, m)
	require.Eventually(t, func() bool { return lastReport(t, m).Cancelled }, 20*time.Second, 200*time.Millisecond)
	running := runningContainers(t, server)
	for _, name := range []string{database, orders, proxy, network} {
		require.Equal(t, containers[name], running[name], "%s runs on", name)
	}
	awaitRow(t, m, "shutdown cancelled in a drain")

	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
	checkPowerOff(t, awaitExits(t, server, containers), m.Journal(t))
	require.Empty(t, runningContainers(t, server))
}

// awaitCancellation returns when logind has cancelled the shutdown and the agent holds a
// new delay lock.
func awaitCancellation(t *testing.T, m *machine.Machine) {
	t.Helper()
	require.Eventually(t, func() bool { return !shutdownIsUnderWay(t, m) && delaysShutdowns(t, m) }, 20*time.Second, 200*time.Millisecond)
}

// shutdownIsUnderWay asks logind whether it prepares for a shutdown.
func shutdownIsUnderWay(t *testing.T, m *machine.Machine) bool {
	t.Helper()
	return m.Run(t, "busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1",
		"org.freedesktop.login1.Manager", "PreparingForShutdown") == "b true"
}

// delaysShutdowns asks logind whether the agent holds a delay lock.
func delaysShutdowns(t *testing.T, m *machine.Machine) bool {
	t.Helper()
	return strings.Contains(m.Run(t, "systemd-inhibit", "--list", "--no-legend"), "kubegrace-node")
}
