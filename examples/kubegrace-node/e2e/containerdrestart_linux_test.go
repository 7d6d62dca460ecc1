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

// roomyConfig has buckets in which a containerd that is away for some seconds takes no pod's time.
const roomyConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 20}
- {priority: 1000, shutdownGracePeriodSeconds: 20}
- {priority: 10000, shutdownGracePeriodSeconds: 20}
- {priority: 100000, shutdownGracePeriodSeconds: 20}
- {priority: 2000000000, shutdownGracePeriodSeconds: 20}
`

// containerd is killed three times in a drain, and is away for two seconds each time: in a sleep hook, in
// the grace period of a container that ignores its signal, and while a sidecar waits for its turn. The pods
// get their graces in order all the same, and the machine goes down in its time.
func TestContainerdIsRestartedInADrain(t *testing.T) {
	eachPlatform(t, testContainerdIsRestartedInADrain)
}

func testContainerdIsRestartedInADrain(t *testing.T, on platform) {
	server, pods := on.containerd.Start(t, images()...), testdataPods(t)
	m := machine.New(t, on.debian)
	installAgent(t, m, nil, pods)
	m.WriteFile(t, configFile, 0o644, []byte(roomyConfig))
	m.Bind(filepath.Dir(server.Socket()), "/run/containerd") // the folder: each containerd makes its socket anew
	containers := runPods(t, server, pods)
	m.Boot(t)
	m.AwaitActive(t, agentUnit)

	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	<-time.After(2 * time.Second)
	server.Kill(t)
	away := row(t, "containerd restarted")
	said := away.MatchString(status(t, m, nil, ""))
	for _, name := range []string{nginx[0], database} { // stubborn and orders are told to stop then
		awaitStatuses(t, server, selectContainers(containers, name))
		<-time.After(time.Second)
		server.Kill(t)
		said = said || away.MatchString(status(t, m, nil, ""))
	}
	require.True(t, said, "status tells that containerd is away")
	m.AwaitPowerOff(t)
	exits, journal := awaitStatuses(t, server, containers), m.Journal(t)
	logAgent(t, journal)
	checkOrder(t, asked, exits, true)
	if ended := exits[orders]; ended.Code == 255 { // containerd 2 does not know the code of what ended while it was away
		exits[orders] = containerdtest.Exit{At: ended.At}
	}
	checkExitCodes(t, exits)
	checkPowerOff(t, exits, journal)
	require.Less(t, exits.lastExit().Sub(asked), 100*time.Second, "the schedule")
	for _, pod := range lastReport(t, m).Pods {
		require.False(t, pod.Ended.IsZero(), pod.Name)
	}
	require.Empty(t, runningContainers(t, server))
}

// awaitStatuses is awaitExits for a containerd that is killed: it asks for statuses, because the events
// of the one before end with it.
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
