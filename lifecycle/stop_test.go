//go:build go1.25

package lifecycle_test

import (
	"cmp"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// StopContainer returns an error although the container has ended. The next list shows the end, so there is no
// second call and the outcome is Graceful. But the error is logged, and is in the result. The runtime lists every
// 10 s: at 10 s, when the stop begins, and at 20 s, after the container's end at 10 s + 3 s.
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

// The StopContainer calls of the containers zoo and app ignore their context, and so does app's hook. Close
// waits until its own context ends. Its error names zoo and app, each once, sorted; web has ended.
func TestCloseNamesContainersThatIgnoreTheirCancellation(t *testing.T) {
	inBubble(t, graceSeconds(5), func(b *testBed) {
		released := make(chan struct{})
		b.addMain("zoo", nil, lifecycletest.Script{HangStops: -1, HangIgnoresContext: true})
		b.addMain("app", scriptedExec(), lifecycletest.Script{HangStops: -1, HangIgnoresContext: true, Exec: func(context.Context, []string) ([]byte, error) {
			<-released
			return nil, nil
		}})
		b.addMain("web", nil, lifecycletest.Script{})
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "has not returned")
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		err = b.Close(ctx)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorContains(b, err, "of ns/pod/app")
		require.ErrorContains(b, err, "of ns/pod/zoo")
		close(released)
		b.rt.Release()
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
