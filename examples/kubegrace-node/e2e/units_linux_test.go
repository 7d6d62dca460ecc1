//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
)

const (
	// kubelet is a stand-in for the unit that would start pods again. systemd restarts it whenever it ends.
	kubelet     = "kubelet.service"
	kubeletText = "[Service]\nExecStart=/bin/sleep infinity\nRestart=always\nRestartSec=100ms\n[Install]\nWantedBy=multi-user.target\n"
	unitFlags   = "KUBEGRACE_NODE_FLAGS=\"-v=2 --stop-unit=kubelet.service\"\n"
)

// bootWithKubelet boots a machine as bootAgent does. The machine also runs kubelet.service, and its agent has the flag
// --stop-unit=kubelet.service.
func bootWithKubelet(t *testing.T, on platform) (m *machine.Machine, server *containerdtest.Server, containers map[string]string) {
	t.Helper()
	m, server, containers = bootAgent(t, on, map[string]string{flagsFile: unitFlags}, func(m *machine.Machine) { m.Enable(t, kubelet, []byte(kubeletText)) })
	m.AwaitActive(t, kubelet)
	return m, server, containers
}

// kubeletState returns the state of kubelet.service, as systemd names it: "active", "deactivating" while it is being stopped,
// or "inactive".
func kubeletState(t *testing.T, m *machine.Machine) string {
	t.Helper()
	return m.Run(t, "systemctl", "show", "--property=ActiveState", "--value", kubelet)
}

// An agent stops the unit and is killed. Just afterwards the shutdown is cancelled. The restarted agent must start the
// unit again when logind no longer prepares for a shutdown, and must delay the next power off.
func TestAUnitIsStartedAgainAfterACancelledShutdown(t *testing.T) {
	t.Parallel()
	m, _, _ := bootWithKubelet(t, newestPlatform(t))
	before := m.Invocation(t, kubelet)
	m.Run(t, "systemctl", "poweroff")
	require.Eventually(t, func() bool { return kubeletState(t, m) == "inactive" }, 4*time.Second, 50*time.Millisecond)

	// The agent is killed, and the shutdown is cancelled.
	m.Run(t, "systemctl", "kill", "--kill-who=main", "--signal=KILL", agentUnit)
	m.Run(t, "busctl", "call", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "CancelScheduledShutdown")
	m.AwaitInvocation(t, kubelet, before)
	awaitCancellation(t, m)

	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
}

// kubegrace-node drain stops the pods of a machine that stays up. The drain must continue if the command is killed, and
// the machine must stay drained when the agent is restarted. undrain must start the unit again and make the agent delay
// shutdowns again. At the end uninstall must remove all files of the agent, and the unit must still run.
func TestDrainOfAMachineThatStaysUp(t *testing.T) {
	eachPlatform(t, func(t *testing.T, on platform) {
		m, server, containers := bootWithKubelet(t, on)
		asked := time.Now()
		const script = "/usr/local/bin/kubegrace-node drain & until systemctl show --property=StatusText kubegrace-node | grep -q Stopping; do sleep 0.1; done; kill $!"
		m.Run(t, "bash", "-c", script) // begins a drain, and kills the command when the agent says that it stops pods
		exits := awaitExits(t, server, containers)
		checkBuckets(t, asked, exits)
		checkExitCodes(t, exits)
		require.Equal(t, "inactive", kubeletState(t, m))

		// The machine stays drained.
		require.Contains(t, m.Run(t, "/usr/local/bin/kubegrace-node", "drain"), "shop/database", "a second drain only shows the report again")
		awaitStatus(t, m, "drained")
		require.Contains(t, status(t, m, asNobody, noFlags), "kubegrace-node runs, and holds no lock: this machine is drained, or nothing waits for its pods.")
		m.Run(t, "systemctl", "restart", agentUnit)
		require.Equal(t, "inactive", kubeletState(t, m))

		require.Contains(t, m.Run(t, "/usr/local/bin/kubegrace-node", "undrain"), "withdrawn")
		require.Equal(t, "active", kubeletState(t, m))
		require.Eventually(t, func() bool { return delaysShutdowns(t, m) }, 20*time.Second, 200*time.Millisecond)

		m.Run(t, "systemctl", "disable", "--now", agentUnit)
		m.Run(t, "/usr/local/bin/kubegrace-node", "uninstall", "--remove-state")
		awaitStatus(t, m, "uninstalled")
		m.Run(t, "test", "!", "-e", "/var/lib/kubegrace-node", "-a", "!", "-e", "/etc/systemd/logind.conf.d")
		require.Equal(t, "active", kubeletState(t, m))
	})
}
