//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A hook of 10 s leaves 20 of 30 s for StopContainer.
func TestHookTimeIsSubtractedFromTheGrace(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", sleepHandler(10), lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		result := b.killPod()
		require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCompleted, Took: 10 * time.Second}, result.Containers[0].Hook)
		b.requireStop("app", 20, 10*time.Second)
		require.Equal(b, 13*time.Second, b.elapsed())
	})
}

// A hook of 60 s is cut at the deadline, after 10 s. StopContainer then has 2 s. A cut hook is no failure,
// so there is no event.
func TestHookThatUsesUpTheGraceIsCut(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", sleepHandler(60), lifecycletest.Script{IgnoreTerm: true})
		result := b.killPod()
		require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCut, Took: 10 * time.Second, Cause: lifecycle.CauseGraceSpent}, result.Containers[0].Hook)
		b.requireStop("app", 2, 10*time.Second)
		require.Equal(b, 12*time.Second, b.elapsed())
		b.requireEvents("Killing")
	})
}

// The container exits by itself during its sleep hook. Nobody needs the rest of the sleep, so the
// termination ends at once.
func TestSleepEndsWithItsContainer(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", sleepHandler(40), lifecycletest.Script{ExitAfter: 7 * time.Second})
		result := b.killPod()
		require.Equal(b, 7*time.Second, b.elapsed())
		require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCut, Took: 7 * time.Second, Cause: lifecycle.CauseContainerExited}, result.Containers[0].Hook)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		b.requireEvents("Killing")
	})
}

// The hook does not return when it is cancelled at 5 s. StopContainer is called then all the same; the
// termination ends 1 s later.
func TestHookThatIgnoresItsCancellationIsAbandoned(t *testing.T) {
	release := make(chan struct{})
	inBubble(t, graceSeconds(5), func(b *testBed) {
		release = make(chan struct{})
		b.addMain("app", scriptedExec(), lifecycletest.Script{})
		result := b.killPod()
		b.requireStop("app", 2, 5*time.Second)
		require.Equal(b, 6*time.Second, b.elapsed())
		require.Equal(b, lifecycle.HookAbandoned, result.Containers[0].Hook.Outcome)
		close(release)
	}, withHooks(func(context.Context) error { <-release; return nil }))
}

// The command gets the grace period as its timeout, so that the runtime can end it too.
func TestExecHookTimeoutIsTheGracePeriod(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{Exec: commandTaking(time.Hour), IgnoreTerm: true})
		result := b.killPod()
		require.Equal(b, 10*time.Second, b.rt.Execs()[0].Timeout)
		require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCut, Took: 10 * time.Second, Cause: lifecycle.CauseGraceSpent}, result.Containers[0].Hook)
		b.requireEvents("Killing")
	})
}

// A hook fails: the error is in the result, the event does not have its output, and the container is
// stopped.
func TestFailedHookIsReportedAndTheContainerIsStopped(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{Exec: func(context.Context, []string) ([]byte, error) {
			return []byte("password=secret"), lifecycletest.ErrScripted
		}})
		result := b.killPod()
		require.Equal(b, lifecycle.HookFailed, result.Containers[0].Hook.Outcome)
		require.ErrorIs(b, result.Containers[0].Hook.Err, lifecycletest.ErrScripted)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		b.requireEvents("Killing", "FailedPreStopHook")
		event := b.events.All()[1]
		require.Equal(b, v1.EventTypeWarning, event.Type)
		require.Equal(b, "PreStopHook failed", event.Message)
	})
}

// A panic in a hook counts as its failure, and the container is stopped.
func TestPanickingHookHasFailed(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{})
		result := b.killPod()
		require.Equal(b, lifecycle.HookFailed, result.Containers[0].Hook.Outcome)
		require.ErrorContains(b, result.Containers[0].Hook.Err, "the hook panicked: boom")
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		b.requireEvents("Killing", "FailedPreStopHook")
	}, withHooks(func(context.Context) error { panic("boom") }))
}

// The hook ignores its cancellation at 5 s. The container is stopped then, and killed 2 s later; the second
// for the hook passes meanwhile. Close waits for the hook and names its container.
func TestAbandonedHookDoesNotDelayTheStop(t *testing.T) {
	var release chan struct{}
	inBubble(t, graceSeconds(5), func(b *testBed) {
		release = make(chan struct{})
		b.addMain("app", scriptedExec(), lifecycletest.Script{IgnoreTerm: true})
		require.Equal(b, lifecycle.HookAbandoned, b.killPod().Containers[0].Hook.Outcome)
		require.Equal(b, 7*time.Second, b.elapsed())
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		err := b.Close(ctx)
		require.ErrorContains(b, err, "ns/pod/app")
		require.ErrorIs(b, err, context.DeadlineExceeded)
		close(release)
	}, withHooks(func(context.Context) error { <-release; return nil }))
}

// A hook that needs 0.6 s to return after its cancellation is Cut. StopContainer did not wait for it.
func TestHookThatReturnsWithinASecondIsNotAbandoned(t *testing.T) {
	inBubble(t, graceSeconds(5), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{})
		result := b.killPod()
		b.requireStop("app", 2, 5*time.Second)
		require.Equal(b, lifecycle.HookCut, result.Containers[0].Hook.Outcome)
		require.Equal(b, 5600*time.Millisecond, result.Containers[0].Hook.Took)
	}, withHooks(func(ctx context.Context) error {
		<-ctx.Done()
		<-time.After(600 * time.Millisecond)
		return ctx.Err()
	}))
}

// A hook is cancelled at 5 s and returns at 5.1 s without an error: it did its work, so it has completed.
func TestCancelledHookWithoutAnErrorHasCompleted(t *testing.T) {
	inBubble(t, graceSeconds(5), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{IgnoreTerm: true})
		require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCompleted, Took: 5100 * time.Millisecond}, b.killPod().Containers[0].Hook)
		b.requireStop("app", 2, 5*time.Second)
	}, withHooks(func(context.Context) error { <-time.After(5100 * time.Millisecond); return nil }))
}

// The request names a container that has already exited. Its sleep hook ends at once.
func TestSleepOfAnExitedContainerEndsAtOnce(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		app := b.addMain("app", sleepHandler(40), lifecycletest.Script{})
		b.rt.Exit("app")
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{app}})
		require.NoError(b, err)
		require.Zero(b, b.elapsed())
		require.Equal(b, lifecycle.CauseContainerExited, result.Containers[0].Hook.Cause)
		b.requireEvents("Killing")
	})
}

// A custom HandlerRunner may return any error for a cancelled sleep.
func TestCustomRunnersSleepErrorAtExitIsNoFailure(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", sleepHandler(40), lifecycletest.Script{ExitAfter: 7 * time.Second})
		require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCut, Took: 7 * time.Second, Cause: lifecycle.CauseContainerExited}, b.killPod().Containers[0].Hook)
		require.Equal(b, 7*time.Second, b.elapsed())
		b.requireEvents("Killing")
	}, withHooks(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }))
}

// A hook returns an error exactly at the deadline, just before or after its cancellation. It is Cut either
// way. 100 times, because the two race.
func TestHookThatFailsAtTheDeadlineIsCut(t *testing.T) {
	for range 100 {
		inBubble(t, graceSeconds(5), func(b *testBed) {
			b.addMain("app", scriptedExec(), lifecycletest.Script{})
			require.Equal(b, lifecycle.CauseGraceSpent, b.killPod().Containers[0].Hook.Cause)
			b.requireEvents("Killing")
		}, withHooks(func(context.Context) error { <-time.After(5 * time.Second); return lifecycletest.ErrScripted }))
	}
}

// An exec or httpGet hook may have work to do outside its container, such as at a load balancer. It runs on
// for its 20 s when the container exits.
func TestOnlySleepsAreCutByAnExit(t *testing.T) {
	for name, hook := range map[string]*v1.LifecycleHandler{
		"exec":    scriptedExec(),
		"httpGet": {HTTPGet: &v1.HTTPGetAction{}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(60), func(b *testBed) {
				b.addMain("app", hook, lifecycletest.Script{ExitAfter: time.Second})
				require.Equal(b, lifecycle.HookCompleted, b.killPod().Containers[0].Hook.Outcome)
				require.Equal(b, 20*time.Second, b.elapsed())
			}, withHooks(func(ctx context.Context) error { _, err := commandTaking(20*time.Second)(ctx, nil); return err }))
		})
	}
}

// With the feature off in the terminator, a sleep hook is skipped, as in a kubelet without the feature.
func TestSleepIsSkippedIfTheFeatureIsOff(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", sleepHandler(40), lifecycletest.Script{})
		require.Equal(b, lifecycle.HookSkipped, b.killPod().Containers[0].Hook.Outcome)
		require.Zero(b, b.elapsed())
		b.requireEvents("Killing")
	}, func(o *lifecycle.TerminatorOptions) { o.Gates = gateWithout{off: lifecycle.PodLifecycleSleepAction} })
}

// The feature may be off in the runner and on in the terminator.
func TestSleepIsSkippedIfTheFeatureIsOffInTheRunner(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", sleepHandler(40), lifecycletest.Script{})
		require.Equal(b, lifecycle.HookCompleted, b.killPod().Containers[0].Hook.Outcome)
		require.Zero(b, b.elapsed())
	}, func(o *lifecycle.TerminatorOptions) {
		o.Hooks = lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{Gates: gateWithout{off: lifecycle.PodLifecycleSleepAction}})
	})
}

// A hook's context has the deadline of the termination, and its cause says that Shorten ended it.
func TestHookContextHasItsDeadlineAndCause(t *testing.T) {
	var cause error
	var deadline time.Time
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Second)
		synctest.Wait()
		require.Equal(b, 60*time.Second, deadline.Sub(b.start))
		b.Shorten(termination, 3)
		<-termination.Done()
		require.Equal(b, lifecycle.CauseShortened, cause)
	}, withHooks(func(ctx context.Context) error {
		deadline, _ = ctx.Deadline()
		<-ctx.Done()
		cause = context.Cause(ctx)
		return cause
	}))
}

// Without the option Hooks, the terminator runs sleep hooks itself; exec hooks need Commands.
func TestDefaultRunnerRunsHooks(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", sleepHandler(3), lifecycletest.Script{})
		b.addMain("web", scriptedExec(), lifecycletest.Script{})
		result := b.killPod()
		require.Equal(b, lifecycle.HookCompleted, result.Containers[0].Hook.Outcome)
		require.ErrorContains(b, result.Containers[1].Hook.Err, "no command runner")
	}, func(o *lifecycle.TerminatorOptions) { o.Hooks = nil })
}
