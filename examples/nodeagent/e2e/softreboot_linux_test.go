//go:build e2e

package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/nodeagent/e2e/machine"
	"github.com/kubegrace/kubegrace/shutdown"
)

// The socket of the host's containerd is a mount of this machine, which systemd would
// undo in a soft reboot, as it does with every mount that has the default dependencies.
const (
	keptMountFile = "/etc/systemd/system/run-containerd-containerd.sock.mount.d/kept.conf"
	keptMountText = "[Unit]\nDefaultDependencies=no\n"
)

// TestASoftRebootDrainsThePodsAndBringsThemBack replaces the userspace of the machine,
// which systemd does from version 254 on. The kernel and its boot id stay, so that only
// the end of the shutdown tells the next agent that this is not the same one.
func TestASoftRebootDrainsThePodsAndBringsThemBack(t *testing.T) {
	t.Parallel()
	m, server, before := bootAgent(t, newest(t), map[string]string{keptMountFile: keptMountText})
	kernel, agent := m.Run(t, "cat", "/proc/sys/kernel/random/boot_id"), m.Invocation(t, agentUnit)

	asked := time.Now()
	m.Run(t, "systemctl", "soft-reboot")
	exits := recordsOf(t, server, before)
	checkBuckets(t, asked, exits)
	checkExitCodes(t, exits)

	m.AwaitInvocation(t, agentUnit, agent)
	require.Equal(t, kernel, m.Run(t, "cat", "/proc/sys/kernel/random/boot_id"), "it is the same boot")
	require.Equal(t, shutdown.KindSoftReboot, lastReport(t, m).Kind)
	require.True(t, held(t, m), "the agent that follows delays the next shutdown")
	after := runningContainers(t, server)
	require.Len(t, after, len(before), "and runs its pods")
	for name, id := range after {
		require.NotEqual(t, before[name], id, "%s is a new one", name)
	}

	asked = time.Now()
	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
	exits = recordsOf(t, server, after)
	checkBuckets(t, asked, exits)
	journal := slices.DeleteFunc(m.Journal(t), func(e machine.Entry) bool { return e.Time.Before(asked) })
	checkPowerOff(t, exits, journal)
}
