package lifecycletest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A unit stops all containers of a pod at the same time, each by its script, and is asked again
// while one of them fails.
func TestAUnitStopsAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := lifecycletest.NewRuntime()
		rt.Start("app", lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		rt.Start("web", lifecycletest.Script{FailStops: 1})
		unit := lifecycletest.Unit{Runtime: rt, IDs: func(*v1.Pod) []string { return []string{"app", "web", "gone"} }}
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Pods: unit})
		require.NoError(t, err)
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"}, Spec: v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(30))}}
		for _, name := range []string{"app", "web"} {
			pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name})
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, v1.ContainerStatus{
				Name: name, ContainerID: "fake://" + name, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
			})
		}
		began := time.Now()
		result, err := terminator.KillPod(t.Context(), pod, lifecycle.Request{})
		require.NoError(t, err)
		require.Equal(t, lifecycle.Graceful, result.Outcome())
		require.Equal(t, 5100*time.Millisecond, time.Since(began))
		require.Len(t, rt.Exits(), 2)

		require.NoError(t, lifecycletest.Unit{Runtime: rt}.StopPod(t.Context(), pod, 1), "those of the status, which have ended")
		rt.Remove("app")
		require.NoError(t, lifecycletest.Unit{Runtime: rt}.StopPod(t.Context(), pod, 1), "one is there")
		rt.Remove("web")
		require.ErrorIs(t, unit.StopPod(t.Context(), pod, 1), lifecycle.ErrContainerNotFound)
		rt.Release()
		require.NoError(t, terminator.Close(t.Context()))
	})
}
