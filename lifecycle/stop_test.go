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

// StopContainer returns an error although the container has ended. The next list shows the end, so there is no
// second call and the outcome is Graceful. But the error is in the result. The runtime lists every
// 10 s: at 10 s, when the stop begins, and at 20 s, after the container's end at 10 s + 3 s.
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
		o.StopTimeoutSlack = 15 * time.Second // a list may take that long; here one takes up to 10 s
		o.Runtime = runtimeWithStop{runtime, func(ctx context.Context, id string, seconds int64) error {
			return cmp.Or(runtime.StopContainer(ctx, id, seconds), lifecycletest.ErrScripted)
		}}
	})
}

// A stop with 10 s is shortened at 7.5 s to 2 s, and the calls with less time, at 7.5 and 8.9 s, fail. The first call
// kills the container at 10 s, while the stop waits for a list. From 7.5 s on the runtime lists every 1.3 s: at 8.8 s
// with the container, which is why there is a third call 0.1 s later, and at 10.1 s without. The outcome is that of the
// first call, although the third, with the minimum of 2 s, still has time until 10.9 s.
func TestKillByAnEarlierCallIsReported(t *testing.T) {
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
			if calls.Add(1) > 1 {
				return lifecycletest.ErrScripted
			}
			return runtime.StopContainer(ctx, id, seconds)
		}}
	})
}

// stopResult is what a StopContainer call returns, and after how long.
type stopResult struct {
	after time.Duration
	err   error
}

// stopReplies is a runtime with a fixed result for each call: the first for the first call, and so on.
type stopReplies struct {
	calls atomic.Int32
	all   []stopResult
}

func (s *stopReplies) StopContainer(context.Context, string, int64) error {
	result := s.all[min(int(s.calls.Add(1)), len(s.all))-1]
	<-time.After(result.after)
	return result.err
}

// A StopContainer call with 60 s begins at 0 s. Shorten at 1 s makes a second call beside it, with a shorter
// timeout. If the first call fails, it is not repeated, because the second is in progress. If the first succeeds
// after the timeout of the second, the second has killed the container.
func TestOverlappingStops(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		seconds int64        // the timeout of the second call
		replies []stopResult // of both calls
		ended   time.Duration
		want    lifecycle.Outcome
	}{
		"the first fails at 3 s, the second succeeds at 6 s": {
			10, []stopResult{{3 * s, lifecycletest.ErrScripted}, {5 * s, nil}}, (1 + 5) * s, lifecycle.OutcomeGraceful,
		},
		"the second kills at 6 s, the first succeeds at 7 s": {
			5, []stopResult{{7 * s, nil}, {7 * s, nil}}, 7 * s, lifecycle.OutcomeGraceExceeded,
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

// The fifth StopContainer call, the first that does not fail, comes late after the deadline. If it is less
// than 0.1 s late, it still has the minimum timeout of 2 s, because timers may fire late. Otherwise what is
// late is subtracted, and the rest rounded down: 2 s - 0.1 s gives 1 s.
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
