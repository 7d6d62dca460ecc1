package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

func TestContainersOf(t *testing.T) {
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	pod := &v1.Pod{Status: v1.PodStatus{
		InitContainerStatuses: []v1.ContainerStatus{
			{Name: "init", ContainerID: "containerd://0", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}},
			{Name: "proxy", ContainerID: "containerd://1", State: running},
		},
		ContainerStatuses:          []v1.ContainerStatus{{Name: "app", ContainerID: "cri-o://2", State: running}, {Name: "waiting"}},
		EphemeralContainerStatuses: []v1.ContainerStatus{{Name: "debug", ContainerID: "3", State: running}},
	}}
	require.Equal(t, []lifecycle.Container{{Name: "app", ID: "2"}, {Name: "proxy", ID: "1"}, {Name: "debug", ID: "3"}}, lifecycle.ContainersOf(pod))
	require.Equal(t, []lifecycle.Container{}, lifecycle.ContainersOf(&v1.Pod{}))
	require.Equal(t, []lifecycle.Container{}, lifecycle.ContainersOf(nil))
}
