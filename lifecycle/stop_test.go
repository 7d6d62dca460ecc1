//go:build go1.25

package lifecycle_test

import (
	"cmp"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// The runtime is listed every 10 s. The container is stopped after the list at 10 s and exits at 13 s, but StopContainer returns an
// error. The list at 20 s lacks the container, so StopContainer is not called again. The outcome is Graceful, and the result has
// the error.
func TestFailedStopOfAnEndedContainerIsReported(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		b.rt.SetLists(lifecycletest.Lists{Poll: 10 * time.Second})
		result := b.killPod()
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		require.ErrorIs(b, result.Containers[0].Err, lifecycletest.ErrScripted)
		require.Len(b, b.rt.Stops(), 1)
	}, func(o *lifecycle.TerminatorOptions) {
		runtime := o.Runtime
		o.StopTimeoutSlack = 15 * time.Second // it also limits a Running call, which waits up to 10 s for the next poll
		o.Runtime = runtimeWithStop{runtime, func(ctx context.Context, id string, seconds int64) error {
			return cmp.Or(runtime.StopContainer(ctx, id, seconds), lifecycletest.ErrScripted)
		}}
	})
}

// The outcome is that of the StopContainer call that has killed the container, even if a later call still has time:
//
//   - At 0 s the first call begins, with 10 s. It kills the container at 10 s.
//   - At 7.5 s Shorten makes a second call with 2 s, which fails. From now on a list waits for the runtime's next poll, at 8.8 s,
//     10.1 s and so on (every 1.3 s).
//   - At 8.8 s a list has the container. A third call follows after a pause of 0.1 s, at 8.9 s, with the minimum of 2 s: until
//     10.9 s. It fails at once, or it succeeds at the kill.
//   - At 10.1 s a list lacks the container.
func TestKillByAnEarlierCallIsReported(t *testing.T) {
	for name, thirdCallFails := range map[string]bool{"the third call fails": true, "the third call succeeds": false} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			inBubble(t, graceSeconds(10), func(b *testBed) {
				b.addMain("app", lifecycletest.Script{IgnoreTerm: true})
				termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
				b.sleepUntil(7500 * time.Millisecond)
				b.rt.SetLists(lifecycletest.Lists{Poll: 1300 * time.Millisecond})
				require.True(b, b.Shorten(termination, 2), "it is shortened")
				result, err := termination.Wait(b.Context())
				require.NoError(b, err)
				require.Equal(b, 10100*time.Millisecond, b.elapsed())
				require.Equal(b, lifecycle.OutcomeGraceExceeded, result.Outcome())
			}, func(o *lifecycle.TerminatorOptions) {
				runtime := o.Runtime
				o.Runtime = runtimeWithStop{runtime, func(ctx context.Context, id string, seconds int64) error {
					call := calls.Add(1)
					if call == 2 || call > 2 && thirdCallFails {
						return lifecycletest.ErrScripted
					}
					return runtime.StopContainer(ctx, id, seconds)
				}}
			})
		})
	}
}

// stopResult is what a StopContainer call returns, and after how long.
type stopResult struct {
	after time.Duration
	err   error
}

// scriptedStops is a runtime with a fixed result for each StopContainer call. Calls after the last one get its result.
type scriptedStops struct {
	calls   atomic.Int32
	results []stopResult
}

func (s *scriptedStops) StopContainer(context.Context, string, int64) error {
	result := s.results[min(int(s.calls.Add(1)), len(s.results))-1]
	<-time.After(result.after)
	return result.err
}

// A StopContainer call with 60 s begins at 0 s. Shorten at 1 s makes a second call with a shorter timeout, while the first is in
// progress. If the first fails, it is not repeated, because the second is in progress, and its success counts. If the second
// call's timeout has passed when the first succeeds, the runtime has killed the container.
func TestOverlappingStops(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		shortenedTo int64 // the timeout of the second call, in seconds
		first       stopResult
		second      stopResult
		ended       time.Duration
		want        lifecycle.Outcome
	}{
		"the first fails at 3 s, the second succeeds at 1 s + 5 s": {
			shortenedTo: 10, first: stopResult{after: 3 * s, err: lifecycletest.ErrScripted}, second: stopResult{after: 5 * s},
			ended: 6 * s, want: lifecycle.OutcomeGraceful,
		},
		"the second has a timeout until 1 s + 5 s, the first succeeds at 7 s": {
			shortenedTo: 5, first: stopResult{after: 7 * s}, second: stopResult{after: 7 * s},
			ended: 7 * s, want: lifecycle.OutcomeGraceExceeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stops := &scriptedStops{results: []stopResult{test.first, test.second}}
			inBubble(t, graceSeconds(60), func(b *testBed) {
				b.addToSpec("app")
				termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{containerNamed("app")}})
				b.sleepUntil(time.Second)
				require.True(b, b.Shorten(termination, test.shortenedTo), "it is shortened")
				<-termination.Done()
				require.Equal(b, test.ended, b.elapsed())
				require.Equal(b, test.want, termination.Result().Outcome())
				require.EqualValues(b, 2, stops.calls.Load())
			}, func(o *lifecycle.TerminatorOptions) { o.Runtime = lifecycle.RuntimeFunc(stops.StopContainer) })
		})
	}
}

// Four StopContainer calls fail, and the fifth comes shortly after the deadline. If it is less than 0.1 s late, it still has
// the minimum timeout of 2 s, because timers may fire late. Otherwise the delay is subtracted, and the rest is rounded down:
// 2 s - 0.1 s gives 1 s.
func TestStopJustAfterTheDeadlineKeepsTheMinimumTimeout(t *testing.T) {
	const ms = time.Millisecond
	const fifthCall = (100 + 200 + 400 + 800) * ms // the pauses after each of four failed calls
	for late, timeoutSeconds := range map[time.Duration]int64{0: 2, 50 * ms: 2, 99 * ms: 2, 100 * ms: 1, 101 * ms: 1} {
		inBubble(t, graceSeconds(60), func(b *testBed) {
			b.addMain("app", lifecycletest.Script{FailStops: 4})
			termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
			deadline := fifthCall - late
			b.sleepUntil(deadline - time.Second)
			require.True(b, b.Shorten(termination, 1), "it is shortened to 1 s from now")
			<-termination.Done()
			calls := b.stopCalls("app")
			require.Len(b, calls, 5)
			require.Equal(b, stopCall{timeoutSeconds: timeoutSeconds, atMilliseconds: fifthCall.Milliseconds()}, calls[4])
		})
	}
}

// The first StopContainer call fails after 3 s. The second begins after a pause of 0.1 s and does not return. It is given up at
// 6 s, which is 1 s (GiveUpAfter) after the deadline of 5 s. The error says how long the second call took, 6 s - 3.1 s = 2.9 s, not
// how long both did.
func TestErrorOfAHangingStopHasItsOwnTime(t *testing.T) {
	inBubble(t, graceSeconds(5), func(b *testBed) {
		b.addToSpec("app")
		_, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{containerNamed("app")}})
		require.ErrorContains(b, err, "StopContainer with timeout 2 has not returned after 2.9s")
	}, giveUpAfterOneSecond, func(o *lifecycle.TerminatorOptions) {
		calls := 0
		o.Runtime = lifecycle.RuntimeFunc(func(ctx context.Context, _ string, _ int64) error {
			if calls++; calls == 1 {
				<-time.After(3 * time.Second)
				return lifecycletest.ErrScripted
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
	})
}
