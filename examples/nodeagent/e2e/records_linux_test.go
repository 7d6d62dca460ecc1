//go:build e2e

package e2e_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubelet/pkg/types"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/containerdtest"
	"github.com/kubegrace/kubegrace/shutdown"
)

// containerName is how a container is called in this test: pod/container.
func containerName(labels map[string]string) string {
	return labels[types.KubernetesPodNameLabel] + "/" + labels[types.KubernetesContainerNameLabel]
}

// runningContainers gives the IDs of the containers that run, by name.
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

// records are what containerd has noted of the end of each container, by name.
type records map[string]containerdtest.Exit

// recordsOf gives the records of containers that have all exited. An event may come
// a little later than what it tells of.
func recordsOf(t *testing.T, server *containerdtest.Server, ids map[string]string) records {
	t.Helper()
	var found records
	all := assert.Eventually(t, func() bool {
		found = records{}
		for name, id := range ids {
			if exit, ok := server.Exits()[id]; ok {
				found[name] = exit
			}
		}
		return len(found) == len(ids)
	}, time.Minute, 50*time.Millisecond)
	require.Truef(t, all, "of %v these have exited: %v", ids, found)
	return found
}

// last is the end of the last of some containers; of all when none is named.
func (r records) last(names ...string) time.Time {
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

// comparePriorities orders pods of a report as a drain does.
func comparePriorities(a, b shutdown.PodReport) int { return cmp.Compare(a.Priority, b.Priority) }
