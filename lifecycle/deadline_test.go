//go:build go1.25

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// Shorten to 3 s at 10 s. Whatever the pod is doing, it has ended by 13 s plus the 2 s that each container
// has at least.
func TestShortenTakesEffectAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		main, sidecar *v1.LifecycleHandler
		script        lifecycletest.Script
	}{
		"in a hook": {main: sleepHandler(40), script: lifecycletest.Script{IgnoreTerm: true}},
		"in a wait": {sidecar: sleepHandler(1), script: lifecycletest.Script{IgnoreTerm: true}},
		"in a stop": {script: lifecycletest.Script{IgnoreTerm: true}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(60), func(b *testBed) {
				b.addSidecar("proxy", test.sidecar, test.script)
				b.addMain("app", test.main, test.script)
				termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
				<-time.After(10 * time.Second)
				require.True(b, b.Shorten(termination, 3))
				require.Equal(b, 13*time.Second, termination.Deadline().Sub(b.start))
				require.False(b, b.Shorten(termination, 3))
				<-termination.Done()
				require.LessOrEqual(b, b.elapsed(), 15*time.Second)
				require.False(b, b.Shorten(termination, 1))
				require.EqualValues(b, 3, termination.Result().GracePeriodSeconds)
			})
		})
	}
}

// The proxy's hook takes 0.9 s, and it then waits 0.8 s for the app. Both count together: from 10 s the
// whole seconds of 1.7 s are subtracted.
func TestUsedTimeIsRoundedDownOnce(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{Exec: commandTaking(1700 * time.Millisecond)})
		b.addSidecar("proxy", scriptedExec(), lifecycletest.Script{Exec: commandTaking(900 * time.Millisecond)})
		b.pod.Spec.Containers[0].Lifecycle.PreStop = scriptedExec()
		b.killPod()
		b.requireStop("app", 9, 1700*time.Millisecond)
		b.requireStop("proxy", 9, 1700*time.Millisecond) // the kubelet rounds 0.9 and 0.8 down separately, and uses 10
	})
}

// At 5 s, 15 s of the grace period are left. Values of 15 s or more have no effect, 14 s has.
func TestShortenDoesNotLengthen(t *testing.T) {
	inBubble(t, graceSeconds(20), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(5 * time.Second)
		for _, longer := range []int64{15, 16, 60, 1 << 62} {
			require.False(b, b.Shorten(termination, longer))
		}
		require.Equal(b, 20*time.Second, termination.Deadline().Sub(b.start))
		require.True(b, b.Shorten(termination, 14))
		<-termination.Done()
		require.Equal(b, 19*time.Second, b.elapsed())
	})
}

// The hook is cut after 1 s. The container then has the 2 s that each has at least.
func TestShortenToZeroOrLessMeansOneSecond(t *testing.T) {
	for _, seconds := range []int64{1, 0, -1, -1 << 63} {
		inBubble(t, graceSeconds(60), func(b *testBed) {
			b.addMain("app", sleepHandler(60), lifecycletest.Script{IgnoreTerm: true})
			termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
			require.True(b, b.Shorten(termination, seconds))
			<-termination.Done()
			b.requireStop("app", 2, time.Second)
			require.Equal(b, 3*time.Second, b.elapsed())
		})
	}
}

// Shorten at 10 s moves the deadline to 15 s. A hook that ends at 12 s is not cut, and the app's timeout is
// the rest: 3 s.
func TestShortenDoesNotAffectHooksThatEndEarlier(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", sleepHandler(12), lifecycletest.Script{ExitAfterTerm: time.Second})
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(10 * time.Second)
		require.True(b, b.Shorten(termination, 5))
		<-termination.Done()
		require.Equal(b, lifecycle.HookCompleted, termination.Result().Containers[0].Hook.Outcome)
		b.requireStop("app", 3, 12*time.Second)
		b.requireStop("proxy", 2, 13*time.Second)
	})
}

// Shorten during a StopContainer call makes a concurrent call with a shorter timeout. After two calls of
// Shorten in a row, the first of the new timeouts may be skipped.
func TestShortenMakesASecondStopContainerCall(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(1500 * time.Millisecond)
		require.True(b, b.Shorten(termination, 10))
		require.True(b, b.Shorten(termination, 4))
		<-termination.Done()
		require.Equal(b, 5500*time.Millisecond, b.elapsed())
		var timeouts []int64
		for _, stop := range b.rt.Stops() {
			timeouts = append(timeouts, stop.TimeoutSeconds)
		}
		require.EqualValues(b, 60, timeouts[0])
		require.EqualValues(b, 4, timeouts[len(timeouts)-1], "there may be a call with 10 in between")
		require.Equal(b, lifecycle.OutcomeGraceExceeded, termination.Result().Outcome())
	})
}

// Shorten at 1 s makes a second StopContainer call. When the container is killed, both return, in either
// order; the outcome must not depend on it.
func TestOutcomeAfterTwoCallsIsThatOfTheEarlierKill(t *testing.T) {
	for range 10 {
		inBubble(t, graceSeconds(60), func(b *testBed) {
			b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
			termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
			<-time.After(time.Second)
			require.True(b, b.Shorten(termination, 4))
			<-termination.Done()
			require.Equal(b, lifecycle.OutcomeGraceExceeded, termination.Result().Outcome())
		})
	}
}

// A shortened deadline makes no second StopContainer call if the first one kills sooner anyway.
func TestNoSecondCallForAStopThatEndsSooner(t *testing.T) {
	inBubble(t, graceSeconds(3), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(1500 * time.Millisecond)
		require.True(b, b.Shorten(termination, 1)) // the minimum of a second call would end after the first call's kill
		<-termination.Done()
		require.Len(b, b.rt.Stops(), 1)
	})
}

// Neither Shorten nor a further Terminate starts the hook again.
func TestHookRunsOnceDespiteShortenings(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{Exec: commandTaking(time.Hour)})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		for _, seconds := range []int64{50, 40, 30, 2} {
			<-time.After(time.Second)
			require.True(b, b.Shorten(termination, seconds))
			b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		}
		<-termination.Done()
		require.Len(b, b.rt.Execs(), 1)
		require.Equal(b, lifecycle.CauseShortened, termination.Result().Containers[0].Hook.Cause)
	})
}

// Somebody deletes the pod again with 5 s while it terminates. The shorter period applies, and a later
// request for 300 s does not lengthen it.
func TestSmallerDeletionGraceShortens(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Second)
		deleted := b.pod.DeepCopy()
		deleted.DeletionGracePeriodSeconds = ptr.To(int64(5))
		b.Terminate(b.Context(), deleted, lifecycle.Request{})
		b.Terminate(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(300))})
		<-termination.Done()
		require.Equal(b, 6*time.Second, b.elapsed())
		require.EqualValues(b, 5, termination.Result().GracePeriodSeconds)
	})
}

// The longest grace period that the API allows must not overflow into one that has passed.
func TestLongestGracePeriods(t *testing.T) {
	inBubble(t, graceSeconds(1<<63-1), func(b *testBed) {
		b.addMain("app", sleepHandler(1<<63-1), lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Hour)
		require.True(b, termination.Deadline().After(time.Now()))
		require.True(b, b.Shorten(termination, 5))
		<-termination.Done()
		require.Equal(b, time.Hour+7*time.Second, b.elapsed())
	})
	inBubble(t, graceSeconds(1<<63-1), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: time.Hour})
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
	})
}

// The agent died during a termination. The next one knows from the pod that 18 of 30 s have passed, and
// that the hook has run.
func TestRestartedAgentUsesTheRemainingGrace(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{IgnoreTerm: true})
		b.pod.DeletionGracePeriodSeconds = ptr.To(int64(30))
		deleted := metav1.NewTime(b.start.Add(12 * time.Second)) // 18 s have passed
		b.pod.DeletionTimestamp = &deleted
		left := graceperiod.LeftOfDeletion(b.pod, time.Now())
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{
			GracePeriodSeconds: &left,
			Containers:         []lifecycle.Container{{Name: "app", ID: "app", PreStopDone: true}},
		})
		require.NoError(b, err)
		require.Equal(b, lifecycle.HookSkipped, result.Containers[0].Hook.Outcome)
		require.Empty(b, b.rt.Execs())
		b.requireStop("app", 12, 0)
	})
}

// A call up to 0.1 s after the deadline still has the minimum timeout, because timers may fire late.
func TestStopJustAfterTheDeadlineKeepsTheMinimumTimeout(t *testing.T) {
	const ms = time.Millisecond
	for late, timeout := range map[time.Duration]int64{0: 2, 50 * ms: 2, 99 * ms: 2, 100 * ms: 1, 101 * ms: 1} {
		inBubble(t, graceSeconds(60), func(b *testBed) {
			b.addMain("app", nil, lifecycletest.Script{FailStops: 4})
			termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
			<-time.After(500*ms - late) // the call after 1.5 s is that late
			require.True(b, b.Shorten(termination, 1))
			<-termination.Done()
			calls := b.stopCalls("app")
			require.Equal(b, stopCall{timeout, 1500}, calls[len(calls)-1])
		})
	}
}
