package lifecycle_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// BenchmarkTerminateLargePod is the time of one KillPod for a pod of 500 main containers and 500
// sidecars, which end at once, one sidecar after the other.
func BenchmarkTerminateLargePod(b *testing.B) {
	pod := runningCrowd(1, 500)[0]
	for i := range 500 {
		name := "sidecar-" + strconv.Itoa(i)
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: name, RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)})
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, v1.ContainerStatus{
			Name: name, ContainerID: "containerd://" + name, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
		})
	}
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: obedientRuntime{}})
	require.NoError(b, err)
	ctx := klog.NewContext(b.Context(), klog.Logger{})
	for b.Loop() {
		result, err := terminator.KillPod(ctx, pod, lifecycle.Request{})
		require.NoError(b, err)
		require.Len(b, result.Containers, 1000)
		terminator.ForgetPod(pod.UID)
	}
}
