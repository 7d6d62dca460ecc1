//go:build go1.25

package lifecycle_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A StopContainer that fails temporarily is repeated with the remaining grace period, and the failure
// is reported once.
func TestFailedStopIsRepeatedWithTheRemainingGrace(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", sleepHandler(1), lifecycletest.Script{ExitAfterTerm: 3 * time.Second, FailStops: 5})
		result := b.killPod()
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		require.ErrorContains(b, result.Containers[0].Err, `failed to stop container "app" (id="app"): StopContainer with timeout 28 failed: the script fails this stop (the last of 5 failures)`)
		require.Equal(b, []stopCall{
			{29, 1000}, {29, 1100}, {29, 1300}, {29, 1700}, {28, 2500}, {27, 3500},
		}, b.stopCalls("app"))
		require.Equal(b, 6500*time.Millisecond, b.elapsed())
		b.requireEvents("Killing", "FailedKillPod")
		event := b.events.All()[1]
		require.Equal(b, "error killing pod: StopContainer with timeout 29 failed: the script fails this stop", event.Message)
		require.Same(b, b.pod, event.Object)
	})
}

// A StopContainer that fails although the container has ended is logged, and its error is in the
// result.
func TestFailedStopOfAnEndedContainerIsReported(t *testing.T) {
	log := errorLog{make(chan error, 10)}
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		b.rt.SetLists(lifecycletest.Lists{Poll: 10 * time.Second})
		result, err := b.KillPod(klog.NewContext(b.Context(), logr.New(log)), b.pod, lifecycle.Request{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		require.ErrorIs(b, result.Containers[0].Err, lifecycletest.ErrScripted)
		require.Len(b, log.errors, 1)
		require.Len(b, b.rt.Stops(), 1)
	}, func(o *lifecycle.TerminatorOptions) {
		runtime := o.Runtime
		o.StopTimeoutSlack = 15 * time.Second
		o.Runtime = runtimeWithStop{runtime, func(ctx context.Context, id string, seconds int64) error {
			return cmp.Or(runtime.StopContainer(ctx, id, seconds), lifecycletest.ErrScripted)
		}}
	})
}

// An unavailable runtime cannot list either: the hook runs once it is available again.
func TestUnavailableRuntimeIsCalledAgain(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", sleepHandler(1), lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		b.rt.Away(0, 3*time.Second)
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
		require.Equal(b, []stopCall{{26, 4500}}, b.stopCalls("app"))
		b.requireEvents("Killing")
	})
}

// StopContainer fails 13 times. The calls go on past the deadline at 2 s: the minimum timeout of 2 s
// shrinks to 0, and the call with 0 that succeeds makes the outcome Forced.
func TestStopThatFailsUntilAfterTheDeadlineIsForced(t *testing.T) {
	inBubble(t, graceSeconds(2), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true, FailStops: 13})
		result := b.killPod()
		require.Equal(b, lifecycle.OutcomeForced, result.Outcome())
		require.Equal(b, []stopCall{
			{2, 0},
			{2, 100},
			{2, 300},
			{2, 700},
			{2, 1500},
			{1, 2500},
			{0, 3500},
			{0, 4500},
			{0, 5500},
			{0, 6500},
			{0, 7500},
			{0, 8500},
			{0, 9500},
			{0, 10500},
		}, b.stopCalls("app"))
		require.Equal(b, stopCall{2, 2000}, b.stopCalls("proxy")[0], "sidecars stop waiting at the deadline")
		b.requireAnyEvents("Killing", "Killing", "FailedKillPod")
	})
}

// The runtime is away from 4 to 6 s, so the call in progress fails. Calls go on with pauses of 0.1, 0.2,
// 0.4, 0.8 and 1 s; the timeout is the rest of the grace period each time.
func TestRuntimeThatBecomesUnavailableDuringAStop(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		b.rt.Away(4*time.Second, 6*time.Second)
		require.Equal(b, lifecycle.OutcomeGraceExceeded, b.killPod().Outcome())
		require.Equal(b, []stopCall{{10, 0}, {6, 4100}, {6, 4300}, {6, 4700}, {5, 5500}, {4, 6500}}, b.stopCalls("app"))
		require.Equal(b, 10500*time.Millisecond, b.elapsed())
	})
}

// StopContainer always fails. The containers are given up GiveUpAfter past the deadline, and only the first
// to fail records an event.
func TestFailingRuntimeIsGivenUp(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{FailStops: -1})
		b.addMain("web", nil, lifecycletest.Script{FailStops: -1})
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, result.Outcome())
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.ErrorContains(b, err, `failed to stop container "app" (id="app")`)
		require.Equal(b, 10*time.Second+lifecycle.DefaultGiveUpAfter, b.elapsed())
		b.requireAnyEvents("Killing", "Killing", "FailedKillPod")
	})
}

// The first call hangs. The second, with the shortened timeout, fails and is repeated, and that call stops
// the container.
func TestShortenWhileTheFirstCallFails(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true, HangStops: 1, FailStops: 1})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(10 * time.Second)
		require.True(b, b.Shorten(termination, 5))
		<-termination.Done()
		require.Equal(b, []stopCall{{60, 0}, {5, 10000}, {5, 10100}}, b.stopCalls("app"))
		require.Equal(b, 15100*time.Millisecond, b.elapsed())
	})
}

// StopContainer never returns. Each call is waited for twice as long as the one before (5, 10, 20, 40 s),
// until GiveUpAfter past the deadline at 10 s.
func TestHangingRuntimeIsGivenUp(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addMain("app", nil, lifecycletest.Script{HangStops: -1})
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(10))})
		require.ErrorContains(b, err, "has not returned")
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, result.Containers[0].Outcome)
		require.Equal(b, []stopCall{{10, 0}, {0, 15000}, {0, 25000}, {0, 45000}, {0, 85000}}, b.stopCalls("app"))
		require.Equal(b, []stopCall{{2, 10000}}, b.stopCalls("proxy"))
		require.Equal(b, 130*time.Second, b.elapsed())
	})
}

// StopContainer hangs. 2 s (StopTimeoutSlack) after its timeout of 10 s, a call with timeout 0 kills the
// container.
func TestHangingStopIsForced(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: 1})
		result := b.killPod()
		require.Equal(b, lifecycle.OutcomeForced, result.Outcome())
		require.ErrorContains(b, result.Containers[0].Err, "has not returned after 12s")
		require.NotContains(b, result.Containers[0].Err.Error(), "the last of", "there is only one failure")
		require.Equal(b, 12*time.Second, b.elapsed())
		require.EqualValues(b, 0, b.rt.Stops()[1].TimeoutSeconds)
	}, func(o *lifecycle.TerminatorOptions) { o.StopTimeoutSlack = 2 * time.Second })
}

// The second call has timeout 0, even before the minimum timeout has passed.
func TestHangingStopIsForcedRightAfterTheDeadline(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: 1})
		require.Equal(b, lifecycle.OutcomeForced, b.killPod().Outcome())
		require.Equal(b, []stopCall{{10, 0}, {0, 10500}}, b.stopCalls("app"))
	}, func(o *lifecycle.TerminatorOptions) { o.StopTimeoutSlack = 500 * time.Millisecond })
}

// The first StopContainer of app hangs, and a second one kills app at 7 s. The context of the first ends
// then, although the termination goes on for web.
func TestHangingCallEndsWithItsContainer(t *testing.T) {
	inBubble(t, graceSeconds(2), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: 1})
		b.addMain("web", nil, lifecycletest.Script{HangStops: -1})
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "web")
		require.Equal(b, 2*time.Second+lifecycle.DefaultGiveUpAfter, b.elapsed())
		for _, stop := range b.rt.Stops() {
			if stop.ID == "app" {
				require.Equal(b, 7*time.Second, stop.Returned.Sub(b.start))
			}
		}
	})
}

// Shorten at 1 s makes a second call with timeout 3, until 4 s. The third follows 5 s (StopTimeoutSlack)
// after that, not after the first call's 600 s.
func TestStopTimeoutSlackCountsFromTheSecondCall(t *testing.T) {
	inBubble(t, graceSeconds(600), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: -1})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Second)
		b.Shorten(termination, 3)
		<-termination.Done()
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, termination.Result().Outcome())
		require.Equal(b, []stopCall{{600, 0}, {3, 1000}, {0, 9000}}, b.stopCalls("app")[:3])
		require.Equal(b, 4*time.Second+lifecycle.DefaultGiveUpAfter, b.elapsed())
	})
}

// StopContainer of two containers ignores its context. Close waits until its own context ends, and its
// error names them, sorted.
func TestCloseNamesContainersThatIgnoreTheirCancellation(t *testing.T) {
	inBubble(t, graceSeconds(5), func(b *testBed) {
		b.addMain("zoo", nil, lifecycletest.Script{HangStops: -1, HangIgnoresContext: true})
		b.addMain("app", nil, lifecycletest.Script{HangStops: -1, HangIgnoresContext: true})
		b.addMain("web", nil, lifecycletest.Script{})
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "has not returned")
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		var stuck *lifecycle.StillRunningError
		require.ErrorAs(b, b.Close(ctx), &stuck)
		require.Equal(b, []string{"ns/pod/app", "ns/pod/zoo"}, stuck.Containers)
		b.rt.Release()
	})
}

// A Wait that times out within the grace period records nothing. One that times out at least 2 s past the
// deadline records the kubelet's event.
func TestWaitRecordsExceededGracePeriod(t *testing.T) {
	inBubble(t, graceSeconds(5), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: -1})
		for _, wait := range []time.Duration{time.Second, 6 * time.Second} { // within the grace period, and after the minimum
			ctx, cancel := context.WithTimeout(b.Context(), wait)
			_, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
			require.ErrorIs(b, err, context.DeadlineExceeded)
			cancel()
		}
		b.requireEvents("Killing", "ExceededGracePeriod")
		event := b.events.All()[1]
		require.Equal(b, "Container runtime did not kill the pod within specified grace period.", event.Message)
		require.Same(b, b.pod, event.Object)
		<-b.Terminate(b.Context(), b.pod, lifecycle.Request{}).Done()
	})
}

// Wait may be called again: once with a context that ends at 1 s, then twice without one, which return the
// final result.
func TestWaitForATermination(t *testing.T) {
	inBubble(t, graceSeconds(5), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		result, err := termination.Wait(ctx)
		var running *lifecycle.StillRunningError
		require.ErrorAs(b, err, &running)
		require.Equal(b, []string{"ns/pod/app"}, running.Containers)
		require.Empty(b, result.Outcome())
		for range 2 {
			result, err = termination.Wait(b.Context())
			require.NoError(b, err)
			require.Equal(b, lifecycle.OutcomeGraceExceeded, result.Outcome())
			require.Equal(b, 5*time.Second, b.elapsed())
		}
	})
}
