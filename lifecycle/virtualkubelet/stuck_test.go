//go:build go1.25

package virtualkubelet_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
)

// A pod is deleted with a grace period of 30 s, and the runtime is away for 3 min. The termination gives up after the 30 s
// and 2 min (GiveUpAfter). The next DeletePod, at 152 s, returns its error and begins a second termination, which does not
// run the hook again, and kills the container once the runtime is back.
func TestDeletePodRetriesAFailedTermination(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(withExecHook("app"))
		b.create(pod)
		b.rt.Away(time.Millisecond, 3*time.Minute) // after StopContainer has sent the stop signal, and before its SIGKILL
		b.deleteWithGrace(pod, 30)
		wait(152 * second) // the grace period of 30 s and the 2 min of GiveUpAfter are over
		require.NotNil(b, b.lastStatus().ContainerStatuses[0].State.Running, "the container may still run")

		err := b.DeletePod(b.Context(), pod)
		require.ErrorIs(b, err, lifecycletest.ErrAway)
		require.ErrorContains(b, err, `failed to stop pod ns/pod: failed to stop container "app" (id="uid/app")`)
		wait(second)
		require.Error(b, b.DeletePod(b.Context(), pod), "the second termination is in progress, so the error of the first is returned")
		wait(30 * second) // until 183 s: the runtime is back since 180 s
		require.Len(b, b.rt.Execs(), 1, "the hook runs once")
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
		require.EqualValues(b, 137, b.lastStatus().ContainerStatuses[0].State.Terminated.ExitCode)
	})
}

// The runtime is away for 3 min. KillPod gives up after the grace period of 10 s and the 2 min of GiveUpAfter, and
// fails. The provider tries again, and kills the container once the runtime is back. The next KillPod, a minute later, returns
// the result, and its SetStatus applies.
func TestKillPodRetriesAFailedTermination(t *testing.T) {
	inBubble(t, func(b *testbed) {
		pod := podOf(container("app"))
		b.create(pod)
		b.rt.Away(0, 3*time.Minute) // from now on
		kill := shutdown.KillRequest{GracePeriodSeconds: ptr.To(int64(10)), SetStatus: func(status *v1.PodStatus) { status.Reason = "Terminated" }}
		result, err := b.KillPod(b.Context(), pod, kill)
		require.ErrorIs(b, err, lifecycletest.ErrAway)
		require.Equal(b, "RuntimeStuck", result.Outcome)
		require.Nil(b, result.Status)
		wait(time.Minute)
		result, err = b.KillPod(b.Context(), pod, kill)
		require.NoError(b, err)
		require.Equal(b, "Forced", result.Outcome)
		require.Equal(b, "Terminated", result.Status.Reason)
		require.EqualValues(b, 137, result.Status.ContainerStatuses[0].State.Terminated.ExitCode)
		synctest.Wait()
		require.Equal(b, *result.Status, b.lastStatus(), "virtual-kubelet gets the same status")
	})
}

// Every StopContainer call hangs, so that KillPod gives up. The container exits later by itself, after an hour. Within 2 min
// its pod ends, without another call of KillPod or DeletePod.
func TestAStuckContainerThatExitsEndsItsPod(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{HangStops: -1, ExitAfter: time.Hour} // each stop hangs
		pod := podOf(container("app"))
		b.create(pod)
		result, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{GracePeriodSeconds: ptr.To(int64(10))})
		require.ErrorContains(b, err, "StopContainer with timeout 0 has not returned")
		require.Equal(b, "RuntimeStuck", result.Outcome)
		require.Nil(b, result.Status)
		require.Equal(b, 130*second, b.elapsed(), "the grace period of 10 s and the 2 min of GiveUpAfter")
		wait(time.Hour)
		require.WithinRange(b, b.began.Add(b.lastNotification().at), b.began.Add(time.Hour), b.began.Add(time.Hour+2*time.Minute))
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		require.NoError(b, b.DeletePod(b.Context(), pod), "the pod has ended")
	})
}

// The runtime can stop nothing for 5 min, so that a termination gives up: after the grace period of 30 s and 2 min. For a pod
// that is not deleted, virtual-kubelet does not call DeletePod. The provider itself begins another termination, which ends
// soon after the 5 min.
func TestAFailedTerminationIsRepeatedWithoutACall(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(*testbed)
		want v1.PodPhase
	}{
		"a pod has completed, but its sidecar runs": {want: v1.PodSucceeded, do: func(b *testbed) {
			b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
			pod := podOf(container("app"))
			pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
			b.create(pod)
		}},
		"a pod has been replaced by one with its name": {want: v1.PodRunning, do: func(b *testbed) {
			b.create(podOf(container("app")))
			newer := podOf(container("app"))
			newer.UID = "newer"
			b.create(newer)
		}},
		"a pod is refused, and the runtime cannot list": {want: v1.PodFailed, do: func(b *testbed) {
			b.rt.SetLists(lifecycletest.Lists{Err: lifecycletest.ErrScripted})
			pod := podOf(container("refused"))
			b.create(pod)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var broken atomic.Bool
			broken.Store(true)
			inBubble(t, func(b *testbed) {
				test.do(b)
				wait(5 * time.Minute)
				status, err := b.GetPodStatus(b.Context(), "ns", "pod")
				require.NoError(b, err)
				require.NotEqual(b, test.want, status.Phase)
				broken.Store(false)
				b.rt.SetLists(lifecycletest.Lists{})
				wait(15 * second)
				require.Equal(b, test.want, b.lastStatus().Phase)
			}, func(o *virtualkubelet.Options) {
				o.Runtime = breakableRuntime{o.Runtime.(*scriptedRuntime), &broken}
				o.Admit = func(pod *v1.Pod) shutdown.Admission {
					return shutdown.Admission{Admit: pod.Spec.Containers[0].Name != "refused", Reason: "NodeShutdown"}
				}
			})
		})
	}
}
