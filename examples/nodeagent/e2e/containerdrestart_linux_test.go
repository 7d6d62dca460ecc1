//go:build e2e

package e2e_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podinfo"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
)

// containerd is killed three times in a drain, and is away for two seconds each time: in a sleep hook, in
// the grace period of a container that ignores its signal, and while a sidecar waits for its turn. The pods
// get their graces in order all the same, and the machine goes down in its time.
func TestContainerdIsRestartedInADrain(t *testing.T) {
	eachPlatform(t, testContainerdIsRestartedInADrain)
}

func testContainerdIsRestartedInADrain(t *testing.T, on platform) {
	server, pods := on.containerd.Start(t, images()...), testdataPods(t)
	m := NewMachine(t, on.debian)
	installAgent(t, m, nil, pods)
	known, err := json.Marshal(v1.PodList{Items: pods})
	require.NoError(t, err)
	m.WriteFile(t, "/var/lib/nodeagent/"+podinfo.File, 0o600, known)
	m.Bind(filepath.Dir(server.Socket()), "/run/containerd") // the folder: each containerd makes its socket anew
	containers := runPods(t, server, pods)
	m.Boot(t)
	m.AwaitActive(t, agentUnit)

	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	<-time.After(2 * time.Second)
	server.Kill(t)
	for _, name := range []string{nginx[0], database} { // stubborn and orders are told to stop then
		awaitStatuses(t, server, selectContainers(containers, name))
		<-time.After(time.Second)
		server.Kill(t)
	}
	m.AwaitPowerOff(t)
	exits, journal := awaitStatuses(t, server, containers), m.Journal(t)
	logAgent(t, journal)
	checkBuckets(t, asked, exits)
	checkExitCodes(t, exits)
	checkPowerOff(t, exits, journal)
	require.Less(t, exits.lastExit().Sub(asked), 38*time.Second, "the schedule")
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
