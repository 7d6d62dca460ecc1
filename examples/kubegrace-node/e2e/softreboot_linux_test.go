//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
)

// The folder of the host's containerd is mounted into the machine. This drop-in keeps it mounted in a soft
// reboot, in which systemd unmounts everything with default dependencies.
const (
	keptMountFile = "/etc/systemd/system/run-containerd.mount.d/kept.conf"
	keptMountText = "[Unit]\nDefaultDependencies=no\n"
)

// A soft reboot (systemd 254 and later) restarts only the machine's userspace. It must drain the pods as a
// reboot does. Kernel and boot ID stay the same, so the next agent cannot tell by the boot ID that the
// shutdown is over. It must see that in the stored state, and delay and drain the power off that follows.
func TestSoftRebootDrainsThePods(t *testing.T) {
	t.Parallel()
	m, server, before := bootAgent(t, newestPlatform(t), map[string]string{keptMountFile: keptMountText})
	kernel, agent := m.Run(t, "cat", "/proc/sys/kernel/random/boot_id"), m.Invocation(t, agentUnit)

	asked := time.Now()
	m.Run(t, "systemctl", "soft-reboot")
	exits := awaitExits(t, server, before)
	checkBuckets(t, asked, exits)
	checkExitCodes(t, exits)

	m.AwaitInvocation(t, agentUnit, agent)
	require.Equal(t, kernel, m.Run(t, "cat", "/proc/sys/kernel/random/boot_id"), "it is the same boot")
	require.Equal(t, source.KindSoftReboot, lastReport(t, m).Kind)
	require.True(t, delaysShutdowns(t, m), "the next agent delays the next shutdown")
	pods := testdataPods(t)
	for i := range pods {
		pods[i].UID += "-again"
	}
	after := runPods(t, server, pods) // nobody tells the agent their priorities, so checkBuckets does not apply
	powerOff(t, m, server, after)
}
