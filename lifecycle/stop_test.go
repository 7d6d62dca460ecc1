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

// StopContainer of two containers ignores its context, and so does the hook of one. Close waits until its own
// context ends, and its error names each container once, sorted.
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
		var stuck *lifecycle.StillRunningError
		require.ErrorAs(b, b.Close(ctx), &stuck)
		require.Equal(b, []string{"ns/pod/app", "ns/pod/zoo"}, stuck.Containers)
		close(released)
		b.rt.Release()
	})
}

// stopResult is what a StopContainer call returns, and after how long.
type stopResult struct {
	after time.Duration
	err   error
}

// stopReplies is a runtime with a fixed result for each call.
type stopReplies struct {
	calls atomic.Int32
	all   []stopResult
}

func (s *stopReplies) StopContainer(context.Context, string, int64) error {
	a := s.all[min(int(s.calls.Add(1)), len(s.all))-1]
	<-time.After(a.after)
	return a.err
}

// After 1 s, a second call with a shorter timeout overlaps the first. Only the later call is repeated
// if it fails, and only a call that has not failed kills.
func TestOverlappingStops(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		seconds int64 // of the second call
		answers []stopResult
		ended   time.Duration
		want    lifecycle.Outcome
	}{
		"the first fails, the second succeeds later": {
			10, []stopResult{{3000 * ms, lifecycletest.ErrScripted}, {5000 * ms, nil}}, 6000 * ms, lifecycle.OutcomeGraceful,
		},
		"the first succeeds after the second has killed": {
			5, []stopResult{{7000 * ms, nil}, {7000 * ms, nil}}, 7000 * ms, lifecycle.OutcomeGraceExceeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := &stopReplies{all: test.answers}
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
