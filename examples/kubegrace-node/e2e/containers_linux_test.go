//go:build e2e

package e2e_test

import (
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

// awaitExits waits until all of the given containers have exited, and returns their exits.
func awaitExits(t *testing.T, server *containerdtest.Server, ids map[string]string) exitsByName {
	t.Helper()
	var exits exitsByName
	all := assert.Eventually(t, func() bool {
		exits = exitsByName{}
		for name, id := range ids {
			if exit, ok := server.Exits()[id]; ok {
				exits[name] = exit
			}
		}
		return len(exits) == len(ids)
	}, time.Minute, 50*time.Millisecond)
	require.Truef(t, all, "of %v these have exited: %v", ids, exits)
	return exits
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
