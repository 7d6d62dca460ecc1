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
// and 2 min (GiveUpAfter). The next DeletePod returns its error and begins a second termination, which does not run the hook
// again, and kills the container once the runtime is back.
func TestDeletePodRetriesAFailedTermination(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(withExecHook("app"))
		b.create(pod)
		b.rt.Away(time.Millisecond, 3*time.Minute) // after StopContainer has sent the stop signal, and before its SIGKILL
		b.deleteWithGrace(pod, 30)
		wait(152 * second) // more than 30 s + 2 min
		require.NotNil(b, b.lastStatus().ContainerStatuses[0].State.Running, "the container may still run")

		err := b.DeletePod(b.Context(), pod)
		require.ErrorIs(b, err, lifecycletest.ErrAway)
		require.ErrorContains(b, err, `failed to stop pod ns/pod: failed to stop container "app" (id="uid/app")`)
		wait(second)
		require.Error(b, b.DeletePod(b.Context(), pod), "the error of the first termination, while the second is in progress")

		wait(30 * second) // until 183 s: the runtime is back
		require.Len(b, b.rt.Execs(), 1, "runs of the hook")
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
		require.EqualValues(b, 137, terminatedState(b, b.lastStatus(), "app").ExitCode)
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
		request := shutdown.KillRequest{GracePeriodSeconds: ptr.To(int64(10)), SetStatus: func(status *v1.PodStatus) { status.Reason = "Terminated" }}
		result, err := b.KillPod(b.Context(), pod, request)
		require.ErrorIs(b, err, lifecycletest.ErrAway)
		require.Equal(b, "RuntimeStuck", result.Outcome)
		require.Nil(b, result.Status)

		wait(time.Minute)
		result, err = b.KillPod(b.Context(), pod, request)
		require.NoError(b, err)
		require.Equal(b, "Forced", result.Outcome)
		require.Equal(b, "Terminated", result.Status.Reason)
		require.EqualValues(b, 137, terminatedState(b, *result.Status, "app").ExitCode)
		synctest.Wait()
		require.Equal(b, *result.Status, b.lastStatus(), "virtual-kubelet gets the same status")
	})
}

// Every StopContainer call hangs, so KillPod gives up after the grace period of 10 s and the 2 min of GiveUpAfter. The container
// exits by itself after an hour. Within 2 min its pod ends, without another call of KillPod or DeletePod.
func TestAStuckContainerThatExitsEndsItsPod(t *testing.T) {
	const allStops = -1
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{HangStops: allStops, ExitAfter: time.Hour}
		pod := podOf(container("app"))
		b.create(pod)
		result, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{GracePeriodSeconds: ptr.To(int64(10))})
		require.ErrorContains(b, err, "StopContainer with timeout 0 has not returned")
		require.Equal(b, "RuntimeStuck", result.Outcome)
		require.Nil(b, result.Status)
		require.Equal(b, (10+120)*second, b.elapsed())

		wait(time.Hour)
		require.WithinRange(b, b.began.Add(b.lastNotification().at), b.began.Add(time.Hour), b.began.Add(time.Hour+2*time.Minute))
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		require.NoError(b, b.DeletePod(b.Context(), pod), "the pod has ended")
	})
}

// For 5 min each StopContainer call fails, and in the last case each list too. A termination gives up after the grace period of
// 30 s and 2 min (GiveUpAfter). virtual-kubelet does not call DeletePod, because the pod is not deleted. The provider itself begins
// another termination, which ends soon after the 5 min.
func TestAFailedTerminationIsRepeatedWithoutACall(t *testing.T) {
	for name, test := range map[string]struct {
		create func(*testbed)
		want   v1.PodPhase // of the newest pod in the end
	}{
		"a pod has completed, but its sidecar runs": {want: v1.PodSucceeded, create: func(b *testbed) {
			b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
			pod := podOf(container("app"))
			pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
			b.create(pod)
		}},
		"a pod has been replaced by one with its name": {want: v1.PodRunning, create: func(b *testbed) {
			b.create(podOf(container("app")))
			newer := podOf(container("app"))
			newer.UID = "newer"
			b.create(newer)
		}},
		"a pod is refused, and the runtime cannot list": {want: v1.PodFailed, create: func(b *testbed) {
			b.rt.SetLists(lifecycletest.Lists{Err: lifecycletest.ErrScripted})
			b.create(podOf(container("refused")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var isBroken atomic.Bool
			isBroken.Store(true)
			inBubble(t, func(b *testbed) {
				test.create(b)
				wait(5 * time.Minute)
				require.NotEqual(b, test.want, b.podStatus("pod").Phase)
				isBroken.Store(false)
				b.rt.SetLists(lifecycletest.Lists{})
				wait(15 * second)
				require.Equal(b, test.want, b.lastStatus().Phase)
			}, func(o *virtualkubelet.Options) {
				o.Runtime = breakableRuntime{o.Runtime.(*scriptedRuntime), &isBroken}
				o.Admit = func(pod *v1.Pod) shutdown.Admission {
					return shutdown.Admission{Admit: pod.Spec.Containers[0].Name != "refused", Reason: "NodeShutdown"}
				}
			})
		})
	}
}
