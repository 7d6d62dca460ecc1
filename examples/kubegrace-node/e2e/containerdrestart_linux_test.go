//go:build e2e

package e2e_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
)

// roomyConfig has buckets of 20 s. That is enough for every pod's grace period even if containerd is away for
// some seconds.
const roomyConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 20}
- {priority: 1000, shutdownGracePeriodSeconds: 20}
- {priority: 10000, shutdownGracePeriodSeconds: 20}
- {priority: 100000, shutdownGracePeriodSeconds: 20}
- {priority: 2000000000, shutdownGracePeriodSeconds: 20}
`

// containerd is killed three times in a drain, and is away for about two seconds each time: during a sleep
// hook, during the grace period of a container that ignores its signal, and while a sidecar waits for its main
// container. All the same each pod must get its grace period, in order, and the machine must power off within
// the schedule.
func TestContainerdIsRestartedInADrain(t *testing.T) {
	eachPlatform(t, testContainerdIsRestartedInADrain)
}

// testContainerdIsRestartedInADrain powers a machine off and kills containerd three times meanwhile. It then
// checks order, exit codes and time as for an undisturbed drain, and that the report has the end of each pod.
func testContainerdIsRestartedInADrain(t *testing.T, on platform) {
	server, pods := on.containerd.Start(t, images()...), testdataPods(t)
	m := machine.New(t, on.debian)
	installAgent(t, m, nil, pods)
	m.WriteFile(t, configFile, 0o644, []byte(roomyConfig))
	m.Bind(filepath.Dir(server.Socket()), "/run/containerd") // the folder, because each start of containerd makes a new socket
	containers := runPods(t, server, pods)
	m.Boot(t)
	m.AwaitActive(t, agentUnit)

	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	<-time.After(2 * time.Second) // the sleep hooks of the first bucket take 5 s
	server.Kill(t)
	away := row(t, "containerd restarted")
	said := away.MatchString(status(t, m, nil, ""))
	for _, name := range []string{nginx[0], database} { // when these have ended, the next bucket begins: stubborn, and orders
		awaitStatuses(t, server, selectContainers(containers, name))
		<-time.After(time.Second)
		server.Kill(t)
		said = said || away.MatchString(status(t, m, nil, ""))
	}
	require.True(t, said, "at least once status said that containerd is away, as COMPARED.md says")
	m.AwaitPowerOff(t)
	exits, journal := awaitStatuses(t, server, containers), m.Journal(t)
	logAgent(t, journal)
	checkOrder(t, asked, exits, true)
	if ended := exits[orders]; ended.Code == 255 { // containerd 2 gives 255 if a container ended while containerd was away
		exits[orders] = containerdtest.Exit{At: ended.At}
	}
	checkExitCodes(t, exits)
	checkPowerOff(t, exits, journal)
	require.Less(t, exits.lastExit().Sub(asked), 100*time.Second, "the schedule: five buckets of 20 s")
	for _, pod := range lastReport(t, m).Pods {
		require.False(t, pod.Ended.IsZero(), pod.Name)
	}
	require.Empty(t, runningContainers(t, server))
}

// awaitStatuses is awaitExits for a containerd that was killed. It polls the statuses of the containers,
// because a killed containerd sends no more events.
func awaitStatuses(t *testing.T, server *containerdtest.Server, ids map[string]string) exitsByName {
	t.Helper()
	exits := exitsByName{}
	require.Eventually(t, func() bool {
		for name, id := range ids {
			response, err := server.Runtime().ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
			if status := response.GetStatus(); err == nil && status.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
				exits[name] = containerdtest.Exit{Code: uint32(status.GetExitCode()), At: time.Unix(0, status.GetFinishedAt())}
			}
		}
		return len(exits) == len(ids)
	}, time.Minute, 50*time.Millisecond)
	return exits
}
