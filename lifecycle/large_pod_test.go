//go:build go1.25

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

// BenchmarkTerminateLargePod measures KillPod for a pod of 500 main containers and 500 sidecars that
// end at once, one sidecar after the other.
func BenchmarkTerminateLargePod(b *testing.B) {
	pod := runningPods(1)[0]
	for i := range 500 {
		name := strconv.Itoa(i)
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: "sidecar-" + name, RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)})
		if i > 0 {
			pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "app-" + name})
		}
	}
	rt := newWorkingRuntime()
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt})
	require.NoError(b, err)
	ctx := klog.NewContext(b.Context(), klog.Logger{})
	for b.Loop() {
		rt.stopped.Clear()
		result, err := terminator.KillPod(ctx, pod, lifecycle.Request{})
		require.NoError(b, err)
		require.Len(b, result.Containers, 1000)
		terminator.Forget(pod)
	}
}
