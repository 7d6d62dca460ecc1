//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A later termination stops a stuck container again, under its old deadline and without running its
// hook again. A container started since gets a new deadline.
func TestLaterTerminationStopsAStuckContainerUnderTheOldDeadline(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{FailStops: 10})
		first, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(5))})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, first.Outcome())
		require.Equal(b, 6*time.Second, b.elapsed())
		b.sleepUntil(20 * time.Second)
		b.addMain("web", nil, lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		again := b.killPod()
		require.Equal(b, lifecycle.OutcomeForced, again.Containers[0].Outcome)
		require.Equal(b, lifecycle.HookCompleted, again.Containers[0].Hook.Outcome)
		require.Equal(b, lifecycle.OutcomeGraceful, again.Containers[1].Outcome)
		b.requireStop("web", 60, 20*time.Second)
		require.Len(b, b.rt.Execs(), 1)
		b.requireAnyEvents("Killing", "FailedKillPod", "Killing", "FailedKillPod")
	}, giveUpAfterOneSecond)
}

// An agent may terminate a pod again to see whether it is gone. It gets the result of the termination that
// stopped the container, not NotFound.
func TestTerminationOfAnEndedPodReturnsThePreviousResult(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: time.Second})
		first := b.killPod()
		require.Equal(b, lifecycle.OutcomeGraceful, first.Outcome())
		require.Equal(b, first.Containers, b.killPod().Containers)
		require.Len(b, b.rt.Stops(), 1)
	})
}

// A container that starts again under its old ID is another run, even if the agent did not call Forget: it
// has its hook and the whole 60 s.
func TestPodStartedAgainWithoutForgetIsTerminatedAgain(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{ExitAfterTerm: time.Second})
		b.killPod()
		b.sleepUntil(5 * time.Minute)
		b.rt.Start(b.pod, "app", "app", lifecycletest.Script{ExitAfterTerm: time.Second})
		result := b.killPod()
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		require.Equal(b, lifecycle.HookCompleted, result.Containers[0].Hook.Outcome)
		require.Len(b, b.rt.Execs(), 2)
		require.Equal(b, []stopCall{{60, 0}, {60, 300000}}, b.stopCalls("app"))
	})
}

// Each KillPod times out while StopContainer hangs. The first that times out at least 2 s past the
// deadline, at 12 s, records the event.
func TestExceededGracePeriodIsRecordedOnce(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: -1})
		for second := range 4 { // overdue from 12 s on
			ctx, cancel := context.WithDeadline(b.quietContext(), b.start.Add(time.Duration(11+second)*time.Second))
			_, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
			cancel()
			var running *lifecycle.StillRunningError
			require.ErrorAs(b, err, &running)
			require.Equal(b, []string{"ns/pod/app"}, running.Containers)
		}
		b.requireEvents("Killing", "ExceededGracePeriod")
		require.NoError(b, b.Close(b.Context()))
	})
}

// As long as no list has arrived, the error can name only the pod, because no container is known.
func TestWaitNamesThePodBeforeTheFirstList(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{})
		b.rt.SetLists(lifecycletest.Lists{Poll: 5 * time.Second})
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
		var running *lifecycle.StillRunningError
		require.ErrorAs(b, err, &running)
		require.Equal(b, []string{"ns/pod"}, running.Containers)
	})
}

// A container that is found after Shorten gets the shortened deadline: its hook, begun at 1 s, is cut at 5
// s.
func TestContainerListedAfterShortenHasTheShorterGrace(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		b.addStopped("web")
		b.pod.Spec.Containers[1].Lifecycle = &v1.Lifecycle{PreStop: sleepHandler(30)}
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		require.True(b, b.Shorten(termination, 5))
		b.sleepUntil(time.Second)
		b.rt.Start(b.pod, "web", "web", lifecycletest.Script{})
		b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-termination.Done()
		require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCut, Cause: lifecycle.CauseShortened, Took: 4 * time.Second}, termination.Result().Containers[1].Hook)
	})
}
