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

// answer is how a StopContainer call returns, and how long after it was made.
type answer struct {
	after time.Duration
	err   error
}

// answers are those of a runtime, one for each call.
type answers struct {
	calls atomic.Int32
	all   []answer
}

func (s *answers) StopContainer(context.Context, string, int64) error {
	a := s.all[min(int(s.calls.Add(1)), len(s.all))-1]
	<-time.After(a.after)
	return a.err
}

// After a second, a call with a shorter timeout joins the first one. Only the later call is
// made again if it fails, and only a call that has not failed kills.
func TestOverlappingStops(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		seconds int64 // of the second call
		answers []answer
		ended   time.Duration
		want    lifecycle.Outcome
	}{
		"the first fails, the second succeeds later": {
			10, []answer{{3000 * ms, lifecycletest.ErrScripted}, {5000 * ms, nil}}, 6000 * ms, lifecycle.OutcomeGraceful,
		},
		"the first succeeds after the second has killed": {
			5, []answer{{7000 * ms, nil}, {7000 * ms, nil}}, 7000 * ms, lifecycle.OutcomeGraceExceeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := &answers{all: test.answers}
			inBubble(t, 60, func(b *bed) {
				b.declare("app")
				termination := b.Terminate(b.silentContext(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{named("app")}})
				<-time.After(time.Second)
				require.True(b, b.Shorten(termination, test.seconds))
				<-termination.Done()
				require.Equal(b, test.ended, b.at())
				require.Equal(b, test.want, termination.Result().Outcome())
				require.EqualValues(b, 2, given.calls.Load())
			}, func(o *lifecycle.TerminatorOptions) { o.Runtime = lifecycle.RuntimeFunc(given.StopContainer) })
		})
	}
}
