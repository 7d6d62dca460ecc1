//go:build go1.25

package lifecycle_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

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
