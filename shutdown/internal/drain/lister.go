package drain

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

const (
	// mostLists is how many calls of Options.Pods may hang at the same time.
	mostLists = 8
	// listPause and listPauseMost bound the pause after a list that has failed.
	listPause, listPauseMost = 50 * time.Millisecond, time.Second
)

// podList is the answer of one call of Options.Pods.
type podList struct {
	pods []*v1.Pod
	err  error
}

// lister asks for the pods. A call that fails is made again, and one that hangs gets another one
// beside it after a second. Only one goroutine may use a lister.
type lister struct {
	hooks    *hooks
	answers  chan podList // of the calls that have not been heard
	under    int          // calls under way
	last     []*v1.Pod    // the last complete list
	complete bool         // there is one
	failed   bool         // a failure was reported since the last complete list
}

// list returns the current pods. If there is no complete list by until, or, where an earlier one
// is known, within answerTime, it returns the last one. complete is false if none is known.
func (l *lister) list(ctx context.Context, until time.Time) (pods []*v1.Pod, complete bool) {
	if l.answers == nil {
		l.answers = make(chan podList, mostLists)
	}
	if l.complete {
		until = earlier(until, time.Now().Add(answerTime))
	}
	for pause := listPause; ; pause = min(2*pause, listPauseMost) {
		answered, err := l.ask(ctx, earlier(until, time.Now().Add(answerTime)))
		if answered && err == nil {
			return l.last, true
		}
		if err != nil && ctx.Err() == nil && !l.failed {
			l.failed = true
			l.hooks.fail(fmt.Errorf("failed to list the pods: %w", err))
		}
		if ctx.Err() != nil || !time.Now().Before(until) || answered && !l.pause(ctx, pause, until) {
			return l.last, l.complete
		}
	}
}

// ask makes one call, unless too many hang, and waits for the answer of any call until a time.
func (l *lister) ask(ctx context.Context, until time.Time) (answered bool, err error) {
	l.start()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case answer := <-l.answers:
		l.under--
		if answer.err == nil {
			l.last, l.complete, l.failed = answer.pods, true, false
		}
		return true, answer.err
	case <-timer.C:
		return false, call.ErrTimeSpent
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

func (l *lister) start() {
	if l.under >= mostLists {
		return
	}
	l.under++
	answers := l.answers
	h := l.hooks
	h.calls.Go(func() string { return "Options.Pods" }, func() {
		var pods []*v1.Pod
		call.Guard(h.ctx, "Options.Pods", func() (err error) {
			pods, err = h.embedder.Pods(h.ctx)
			return err
		}, func(err error) { answers <- podList{pods, err} })
	})
}

// pause waits before the next call. It returns false if the time is over before.
func (l *lister) pause(ctx context.Context, d time.Duration, until time.Time) bool {
	timer := time.NewTimer(min(d, time.Until(until)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil && time.Now().Before(until)
}
