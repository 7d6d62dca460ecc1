//go:build e2e

package e2e_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubelet/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
)

// containerName returns the name of a container in the tests, pod/container, from the labels that a kubelet
// sets.
func containerName(labels map[string]string) string {
	return labels[types.KubernetesPodNameLabel] + "/" + labels[types.KubernetesContainerNameLabel]
}

// runningContainers returns the IDs of the running containers by name.
func runningContainers(t *testing.T, server *containerdtest.Server) map[string]string {
	t.Helper()
	list, err := server.Runtime().ListContainers(t.Context(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}})
	require.NoError(t, err)
	ids := map[string]string{}
	for _, container := range list.GetContainers() {
		ids[containerName(container.GetLabels())] = container.GetId()
	}
	return ids
}

// exitsByName has the exit codes and times of containers by name (pod/container), as containerd reported them.
type exitsByName map[string]containerdtest.Exit

// awaitExits waits until all of the given containers have exited, and returns their exits. It polls the statuses of
// the containers, because a containerd that was killed sends no more events.
func awaitExits(t *testing.T, server *containerdtest.Server, ids map[string]string) exitsByName {
	t.Helper()
	exits := exitsByName{}
	all := assert.Eventually(t, func() bool {
		for name, id := range ids {
			response, err := server.Runtime().ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
			if status := response.GetStatus(); err == nil && status.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
				exits[name] = containerdtest.Exit{Code: uint32(status.GetExitCode()), At: time.Unix(0, status.GetFinishedAt())}
			}
		}
		return len(exits) == len(ids)
	}, time.Minute, 50*time.Millisecond)
	require.Truef(t, all, "of %v these have exited: %v", ids, exits)
	return exits
}

// selectContainers returns the part of containers that has these names.
func selectContainers(containers map[string]string, names ...string) map[string]string {
	selected := maps.Clone(containers)
	maps.DeleteFunc(selected, func(name, _ string) bool { return !slices.Contains(names, name) })
	return selected
}

// lastExit returns the time of the last exit of the named containers, or of all containers if no name is
// given.
func (r exitsByName) lastExit(names ...string) time.Time {
	var last time.Time
	for name, exit := range r {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		if exit.At.After(last) {
			last = exit.At
		}
	}
	return last
}
