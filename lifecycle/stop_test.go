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

// StopContainer ends the container and returns an error nevertheless. The next list lacks the container, so StopContainer is
// not called again, and the outcome is Graceful; the result keeps the error.
//
// The runtime polls every 10 s, and a list waits for the next poll. The container is stopped after the list at 10 s and
// exits at 13 s, so that the list at 20 s is the first without it.
func TestFailedStopOfAnEndedContainerIsReported(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		b.rt.SetLists(lifecycletest.Lists{Poll: 10 * time.Second})
		result, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{})
		require.NoError(b, err)
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
//   - At 7.5 s Shorten makes a second call with 2 s, which fails. From now on a list waits for the runtime's next poll, at
//     8.8 s,
//     10.1 s and so on (every 1.3 s).
//   - At 8.8 s a list has the container. A third call follows after a pause of 0.1 s, at 8.9 s. It has the minimum of 2 s,
//     until
//     10.9 s. It fails at once, or it succeeds at the kill.
//   - At 10.1 s a list lacks the container.
func TestKillByAnEarlierCallIsReported(t *testing.T) {
	for _, test := range []struct {
		thirdCall string
		fails     bool
	}{
		{"the third call fails", true},
		{"the third call succeeds", false},
	} {
		t.Run(test.thirdCall, func(t *testing.T) {
			var calls atomic.Int64
			inBubble(t, graceSeconds(10), func(b *testBed) {
				b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
				termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
				b.sleepUntil(7500 * time.Millisecond)
				b.rt.SetLists(lifecycletest.Lists{Poll: 1300 * time.Millisecond})
				require.True(b, b.Shorten(termination, 2))
				result, err := termination.Wait(b.Context())
				require.NoError(b, err)
				require.Equal(b, 10100*time.Millisecond, b.elapsed())
				require.Equal(b, lifecycle.OutcomeGraceExceeded, result.Outcome())
			}, func(o *lifecycle.TerminatorOptions) {
				runtime := o.Runtime
				o.Runtime = runtimeWithStop{runtime, func(ctx context.Context, id string, seconds int64) error {
					call := calls.Add(1)
					if call == 2 || call > 2 && test.fails {
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

// stopReplies is a runtime with a fixed result for each call: the first for the first call, and so on. Further calls get the
// last one.
type stopReplies struct {
	calls atomic.Int32
	all   []stopResult
}

func (s *stopReplies) StopContainer(context.Context, string, int64) error {
	result := s.all[min(int(s.calls.Add(1)), len(s.all))-1]
	<-time.After(result.after)
	return result.err
}

// A StopContainer call with 60 s begins at 0 s. Shorten at 1 s makes a second call, with a shorter timeout, while the first
// is in progress. If the first call fails, it is not repeated, because the second is in progress: that returns 5 s after its
// beginning, at 1 s + 5 s = 6 s. In the other case the second call has a timeout of 5 s, so the runtime kills at 6 s. The
// first call succeeds at 7 s, so the container counts as killed.
func TestOverlappingStops(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		seconds int64        // the timeout of the second call
		replies []stopResult // of the first call and the second
		ended   time.Duration
		want    lifecycle.Outcome
	}{
		"the first fails at 3 s, the second succeeds at 6 s": {
			seconds: 10, replies: []stopResult{{3 * s, lifecycletest.ErrScripted}, {5 * s, nil}}, ended: (1 + 5) * s, want: lifecycle.OutcomeGraceful,
		},
		"the second kills at 6 s, the first succeeds at 7 s": {
			seconds: 5, replies: []stopResult{{7 * s, nil}, {7 * s, nil}}, ended: 7 * s, want: lifecycle.OutcomeGraceExceeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := &stopReplies{all: test.replies}
			inBubble(t, graceSeconds(60), func(b *testBed) {
				b.addStopped("app")
				termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{containerNamed("app")}})
				<-time.After(time.Second)
				require.True(b, b.Shorten(termination, test.seconds))
				<-termination.Done()
				require.Equal(b, test.ended, b.elapsed())
				require.Equal(b, test.want, termination.Result().Outcome())
				require.EqualValues(b, 2, given.calls.Load())
			}, func(o *lifecycle.TerminatorOptions) { o.Runtime = lifecycle.RuntimeFunc(given.StopContainer) })
		})
	}
}

// Four StopContainer calls fail, and the fifth comes shortly after the deadline. If it is less than 0.1 s late, it still has
// the minimum timeout of 2 s, because timers may fire late. Otherwise the delay is subtracted, and the rest is rounded down:
// 2 s - 0.1 s gives 1 s.
func TestStopJustAfterTheDeadlineKeepsTheMinimumTimeout(t *testing.T) {
	const ms = time.Millisecond
	const fifthCall = (100 + 200 + 400 + 800) * ms // the pauses after each of four failed calls
	for late, timeout := range map[time.Duration]int64{0: 2, 50 * ms: 2, 99 * ms: 2, 100 * ms: 1, 101 * ms: 1} {
		inBubble(t, graceSeconds(60), func(b *testBed) {
			b.addMain("app", nil, lifecycletest.Script{FailStops: 4})
			termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
			b.sleepUntil(fifthCall - late - time.Second)
			require.True(b, b.Shorten(termination, 1)) // the deadline is now fifthCall - late
			<-termination.Done()
			calls := b.stopCalls("app")
			require.Len(b, calls, 5)
			require.Equal(b, stopCall{timeoutSeconds: timeout, atMilliseconds: fifthCall.Milliseconds()}, calls[4])
		})
	}
}

// The first StopContainer call fails after 3 s. The second begins after a pause of 0.1 s and does not return. It is given up
// at 5 s + 1 s (GiveUpAfter) = 6 s. The error says how long the second call took, 6 s - 3.1 s = 2.9 s, not how long both did.
func TestErrorOfAHangingStopHasItsOwnTime(t *testing.T) {
	inBubble(t, graceSeconds(5), func(b *testBed) {
		b.addStopped("app")
		request := lifecycle.Request{Containers: []lifecycle.Container{containerNamed("app")}}
		_, err := b.KillPod(b.quietContext(), b.pod, request)
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
