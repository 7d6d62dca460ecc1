package drain

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/times"
)

const (
	// quickLists is how many calls of Options.Pods in a row may hang before the next one is
	// delayed. With each further one that hangs the next one is made a second later, so that the
	// number of those that hang grows with the square root of the time.
	quickLists = 8
	// listPause and listPauseMost bound the pause after a list that has failed.
	listPause, listPauseMost = 50 * time.Millisecond, time.Second
)

// podList is the answer of one call of Options.Pods.
type podList struct {
	number int // of the call
	pods   []*v1.Pod
	err    error
}

// lister asks for the pods. A call that fails is made again, and one that hangs gets another one
// beside it after a second, or later if many hang. Only one goroutine may use a lister.
type lister struct {
	*hooks

	answers  chan podList // of the calls that have not been heard
	silent   int          // calls since the last answer
	begun    int          // the number of the newest call
	asked    time.Time    // when the newest call was made
	newest   int          // that of the newest call that has given a complete list
	last     []*v1.Pod    // what that has given
	complete bool         // there is one
	failed   bool         // a failure was reported since the last complete list
}

// list returns the current pods. If there is no complete list by until, it returns the last one.
// complete is false if none is known.
func (l *lister) list(ctx context.Context, until time.Time) (pods []*v1.Pod, complete bool) {
	if l.answers == nil {
		l.answers = make(chan podList, quickLists)
	}
	first := l.begun + 1
	for pause := listPause; ; pause = min(2*pause, listPauseMost) {
		answered, err := l.ask(ctx, first, times.Earlier(until, time.Now().Add(answerTime)))
		if answered && err == nil {
			return l.last, true
		}
		if ctx.Err() == nil && !l.failed {
			l.failed = true
			l.listener.Fail(fmt.Errorf("failed to list the pods: %w", err))
		}
		if ctx.Err() != nil || !time.Now().Before(until) || answered && !l.pause(ctx, pause, until) {
			return l.last, l.complete
		}
	}
}

// ask makes one call, unless many hang and the newest is too young, and waits for the answer of any call from the first on
// until a time. What an older call gives comes late: it counts only where nothing newer is known.
func (l *lister) ask(ctx context.Context, first int, until time.Time) (answered bool, err error) {
	l.start()
	over := time.After(time.Until(until))
	for {
		select {
		case answer := <-l.answers:
			l.silent = 0
			current := answer.number >= first || !l.complete
			if answer.err == nil && answer.number > l.newest {
				l.newest, l.last, l.complete = answer.number, answer.pods, true
			}
			if current {
				l.failed = l.failed && answer.err != nil
				return true, answer.err
			}
		case <-over:
			return false, call.ErrTimeSpent
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (l *lister) start() {
	if time.Since(l.asked) < time.Duration(l.silent-quickLists+1)*answerTime {
		return
	}
	l.silent++
	l.begun++
	l.asked = time.Now()
	number, answers, h := l.begun, l.answers, l.hooks
	h.Calls.Go(func() string { return "Options.Pods" }, func() {
		var pods []*v1.Pod
		call.Guard(h.run, "Options.Pods", func() (err error) {
			pods, err = h.Pods(h.run)
			return err
		}, func(err error) {
			select {
			case answers <- podList{number, pods, err}:
			case <-h.run.Done():
			}
		})
	})
}

// pause waits before the next call. It returns false if the time is over before.
func (l *lister) pause(ctx context.Context, d time.Duration, until time.Time) bool {
	select {
	case <-time.After(min(d, time.Until(until))):
	case <-ctx.Done():
	}
	return ctx.Err() == nil && time.Now().Before(until)
}
