//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
)

// A pod is deleted with a grace period of 30 s, and at 10 s a drain kills it with 5 s. Both share one termination: the hook
// runs once, the deadline moves from 30 s to 10 s + 5 s, and the drain and virtual-kubelet get the same final status.
func TestKillPodJoinsTheTerminationOfDeletePod(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(withExecHook("app"))
		b.create(pod)
		b.deleteWithGrace(pod, 30)
		wait(10 * second)
		result, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{
			GracePeriodSeconds: ptr.To(int64(5)),
			SetStatus:          func(status *v1.PodStatus) { status.Reason = "Terminated" },
		})
		require.NoError(b, err)
		require.Equal(b, (10+5)*second, b.elapsed())
		require.Equal(b, "GraceExceeded", result.Outcome)
		require.Equal(b, "Terminated", result.Status.Reason)
		require.Equal(b, v1.PodFailed, result.Status.Phase)
		require.Len(b, b.rt.Execs(), 1, "runs of the hook")
		synctest.Wait()
		require.Equal(b, *result.Status, b.lastStatus())
	})
}

// A pod was killed and has ended, but is not deleted. A second KillPod returns the same result, CreatePod refuses to start the
// pod again, and a shutdown does not list it. DeletePod makes the provider forget it.
func TestAKilledPodIsKeptUntilItIsDeleted(t *testing.T) {
	inBubble(t, func(b *testbed) {
		pod := podOf(container("app"))
		b.create(pod)
		for range 2 {
			result, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{SetStatus: func(status *v1.PodStatus) { status.Message = "evicted" }})
			require.NoError(b, err)
			require.Equal(b, "Graceful", result.Outcome)
			require.Equal(b, "evicted", result.Status.Message)
		}
		require.ErrorIs(b, b.CreatePod(b.Context(), pod), lifecycle.ErrTerminating)
		require.NoError(b, b.UpdatePod(b.Context(), pod))
		require.Empty(b, b.podsForShutdown())

		b.deleteWithGrace(pod, 30)
		synctest.Wait()
		result, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{})
		require.NoError(b, err)
		require.Equal(b, shutdown.KillResult{Outcome: "NotFound"}, result)
	})
}

// A pod is unknown to the provider. If the runtime lists none of its containers, it has ended: a drain that has listed the pod
// before must not wait for it. If they run, as those of a pod that was not adopted, or the list fails, KillPod fails.
func TestKillPodAsksTheRuntimeAboutAnUnknownPod(t *testing.T) {
	inBubble(t, func(b *testbed) {
		unknown := podOf(container("app"))
		result, err := b.KillPod(b.Context(), unknown, shutdown.KillRequest{})
		require.NoError(b, err)
		require.Equal(b, shutdown.KillResult{Outcome: "NotFound"}, result)

		// Its container runs.
		b.rt.Start(unknown, "app", "uid/app", lifecycletest.Script{})
		_, err = b.KillPod(b.Context(), unknown, shutdown.KillRequest{})
		require.True(b, errdefs.IsNotFound(err))

		// The list fails.
		b.rt.SetLists(lifecycletest.Lists{Err: lifecycletest.ErrScripted})
		_, err = b.KillPod(b.Context(), unknown, shutdown.KillRequest{})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)

		// The provider is closed.
		require.NoError(b, b.Close(b.Context()))
		_, err = b.KillPod(b.Context(), unknown, shutdown.KillRequest{})
		require.ErrorIs(b, err, shutdown.ErrNoRetry)
	})
}

// A pod that is deleted and killed is kept until KillPod has returned its result, and then forgotten: another KillPod finds
// nothing, and a pod with the same UID can be created, whose hook runs too.
func TestAPodThatIsKilledAndDeletedIsForgotten(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 4 * second}
		pod := podOf(withExecHook("app"))
		b.create(pod)
		b.deleteWithGrace(pod, 30)
		result, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{GracePeriodSeconds: ptr.To(int64(30))})
		require.NoError(b, err)
		require.Equal(b, v1.PodSucceeded, result.Status.Phase)
		synctest.Wait()
		result, err = b.KillPod(b.Context(), pod, shutdown.KillRequest{})
		require.NoError(b, err)
		require.Equal(b, "NotFound", result.Outcome)

		b.create(pod)
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
		b.deleteWithGrace(pod, 30)
		wait(second)
		require.Len(b, b.rt.Execs(), 2, "runs of the hook")
	})
}

// A pod has two containers: app, which ignores its stop signal, and other, which exits at once. The context of KillPod ends
// after 10 s. Its error names app, and the termination continues until its deadline at 30 s. Another KillPod, without a
// SetStatus, gets the status as the first call's SetStatus has changed it.
func TestKillPodStopsWaitingWithItsContext(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(container("app"), container("other"))
		b.create(pod)
		ctx, cancel := context.WithTimeout(b.Context(), 10*second)
		defer cancel()
		_, err := b.KillPod(ctx, pod, shutdown.KillRequest{
			GracePeriodSeconds: ptr.To(int64(30)),
			SetStatus:          func(status *v1.PodStatus) { status.Reason = "Terminated" },
		})
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.EqualError(b, err, "timeout waiting to kill pod: containers that have not ended: ns/pod/app: context deadline exceeded")

		result, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{})
		require.NoError(b, err)
		require.Equal(b, 30*second, b.elapsed())
		require.Equal(b, "Terminated", result.Status.Reason)
	})
}

// Close during a termination ends the termination, not the container, so that a restarted agent can adopt it.
// Later calls fail.
func TestCloseLeavesPodsRunning(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(container("app"))
		b.create(pod)
		b.deleteWithGrace(pod, 30)
		wait(second)
		require.NoError(b, b.Close(b.Context()))
		require.Empty(b, b.rt.Exits())
		require.ErrorIs(b, b.DeletePod(b.Context(), pod), lifecycle.ErrClosed)
		_, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{})
		require.ErrorIs(b, err, lifecycle.ErrClosed)
	})
}

// A StopContainer call of the pod "pod" and a StartContainer call of "other" ignore the end of their contexts. Close gives up
// when its own context ends, after a minute, and its error names both calls.
func TestCloseNamesHangingCalls(t *testing.T) {
	const allStops = -1
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{HangStops: allStops, HangIgnoresContext: true}
		pod := podOf(container("app"))
		b.create(pod)
		b.deleteWithGrace(pod, 30)
		release := make(chan struct{})
		b.rt.beforeStart = func(context.Context, string) error {
			<-release
			return nil
		}
		b.create(podNamed("other", container("late")))

		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		err := b.Close(ctx)
		require.ErrorContains(b, err, "ns/pod/app")
		require.ErrorContains(b, err, "calls that have not returned: StartContainer of container late of ns/other: ")
		require.ErrorIs(b, err, context.DeadlineExceeded)
		close(release)
	})
}
