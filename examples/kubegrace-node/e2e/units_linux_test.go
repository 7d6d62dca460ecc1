//go:build e2e

package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

const (
	// kubelet is a stand-in for the unit that would start pods again. systemd restarts it whenever it ends.
	kubelet     = "kubelet.service"
	kubeletText = "[Service]\nExecStart=/bin/sleep infinity\nRestart=always\nRestartSec=100ms\n[Install]\nWantedBy=multi-user.target\n"
	unitFlags   = "KUBEGRACE_NODE_FLAGS=\"-v=2 --stop-unit=kubelet.service\"\n"
)

// bootWithKubelet boots a machine with kubelet.service, whose agent has --stop-unit=kubelet.service. exits
// waits until all containers have exited, and returns their exits.
func bootWithKubelet(t *testing.T, on platform) (m *machine.Machine, exits func() exitsByName, containers map[string]string) {
	t.Helper()
	m, server, containers := bootAgent(t, on, map[string]string{flagsFile: unitFlags}, func(m *machine.Machine) { m.Enable(t, kubelet, []byte(kubeletText)) })
	m.AwaitActive(t, kubelet)
	return m, func() exitsByName { return awaitExits(t, server, containers) }, containers
}

// active reports whether kubelet.service runs.
func active(t *testing.T, m *machine.Machine) bool {
	t.Helper()
	return m.Run(t, "systemctl", "show", "--property=ActiveState", "--value", kubelet) == "active"
}

// At a poweroff the agent stops the unit of --stop-unit, here a stand-in for kubelet.service, before the first
// container exits. During the shutdown, systemctl start does not bring the unit back.
func TestAUnitIsStoppedBeforeTheFirstPod(t *testing.T) {
	eachPlatform(t, testAUnitIsStoppedBeforeTheFirstPod)
}

// testAUnitIsStoppedBeforeTheFirstPod powers off a machine with kubelet.service, tries to start the unit
// meanwhile, and compares the time in the journal at which the unit stopped with the first exit of a
// container.
func testAUnitIsStoppedBeforeTheFirstPod(t *testing.T, on platform) {
	m, exits, _ := bootWithKubelet(t, on)
	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	require.Eventually(t, func() bool { return !active(t, m) }, 4*time.Second, 50*time.Millisecond, "the unit must stop before the sleep hooks of the first pods end, which take 5 s")
	m.Run(t, "systemctl", "start", kubelet)
	require.False(t, active(t, m), "systemctl start must not bring the unit back during the shutdown")
	m.AwaitPowerOff(t)
	journal := m.Journal(t)
	checkBuckets(t, asked, exits())
	checkPowerOff(t, exits(), journal)
	i := slices.IndexFunc(journal, func(e machine.Entry) bool { return strings.HasPrefix(e.Message, "Stopped "+kubelet) })
	require.GreaterOrEqual(t, i, 0)
	firstExit := exits().lastExit()
	for _, exit := range exits() {
		if exit.At.Before(firstExit) {
			firstExit = exit.At
		}
	}
	require.True(t, journal[i].Time.Before(firstExit))
}

// A shutdown is cancelled just after the agent that stopped the unit was killed. The restarted agent must
// start the unit again once logind no longer prepares for a shutdown, and must then delay the next power off.
func TestAUnitIsStartedAgainAfterACancelledShutdown(t *testing.T) {
	t.Parallel()
	m, _, _ := bootWithKubelet(t, newestPlatform(t))
	before := m.Invocation(t, kubelet)
	m.Run(t, "systemctl", "poweroff")
	require.Eventually(t, func() bool { return !active(t, m) }, 4*time.Second, 50*time.Millisecond)
	m.Run(t, "systemctl", "kill", "--kill-who=main", "--signal=KILL", agentUnit)
	m.Run(t, "busctl", "call", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "CancelScheduledShutdown")
	m.AwaitInvocation(t, kubelet, before)
	awaitCancellation(t, m)
	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
}

// kubegrace-node drain stops the pods of a machine that stays up. The drain must continue if the command is
// killed, and last when the agent is restarted. undrain must start the unit again and make the agent delay
// shutdowns again. At the end uninstall must leave nothing of the agent, with the unit running.
func TestDrainOfAMachineThatStaysUp(t *testing.T) {
	eachPlatform(t, testDrainOfAMachineThatStaysUp)
}

// testDrainOfAMachineThatStaysUp drains a machine with kubelet.service, restarts its agent, undrains it and
// uninstalls the agent. The unit runs at the beginning and the end, and not in between.
func testDrainOfAMachineThatStaysUp(t *testing.T, on platform) {
	m, exits, _ := bootWithKubelet(t, on)
	asked := time.Now()
	const script = "/usr/local/bin/kubegrace-node drain & until systemctl show --property=StatusText kubegrace-node | grep -q Stopping; do sleep 0.1; done; kill $!"
	m.Run(t, "bash", "-c", script) // begins a drain, and kills the command when the agent says that it stops pods
	checkBuckets(t, asked, exits())
	checkExitCodes(t, exits())
	require.False(t, active(t, m))
	require.Contains(t, m.Run(t, "/usr/local/bin/kubegrace-node", "drain"), "shop/database", "a second drain only shows the report again")
	awaitRow(t, m, "drained")
	m.Run(t, "systemctl", "restart", agentUnit)
	require.False(t, active(t, m))
	require.Contains(t, m.Run(t, "/usr/local/bin/kubegrace-node", "undrain"), "withdrawn")
	require.True(t, active(t, m))
	require.Eventually(t, func() bool { return delaysShutdowns(t, m) }, 20*time.Second, 200*time.Millisecond)
	m.Run(t, "systemctl", "disable", "--now", agentUnit)
	m.Run(t, "/usr/local/bin/kubegrace-node", "uninstall", "--remove-state")
	awaitRow(t, m, "uninstalled")
	m.Run(t, "test", "!", "-e", "/var/lib/kubegrace-node", "-a", "!", "-e", "/etc/systemd/logind.conf.d")
	require.True(t, active(t, m))
}
