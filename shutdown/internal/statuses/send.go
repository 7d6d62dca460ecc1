package statuses

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// pump begins as many calls as may be made now. The mutex is held.
func (q *Queue) pump() {
	for q.ctx.Err() == nil && q.sending < q.atOnce() {
		i := q.next()
		if i == nil {
			return
		}
		q.sending++
		q.calls.Go(i.name, func() { q.work(i) })
	}
}

// atOnce is how many calls may be made at the same time now.
func (q *Queue) atOnce() int {
	if q.pause > 0 {
		return 1
	}
	return callsAtOnce
}

// next takes the item that is to be sent next; nil: none is, now. What has not failed yet
// comes first, so that a pod that is refused for ever takes nobody's turn. The mutex is
// held.
func (q *Queue) next() *item {
	now := time.Now()
	if now.Before(q.paused) {
		q.wake(q.paused)
		return nil
	}
	for k := range q.fresh {
		if kind(k) == mark && len(q.inFlight[restore]) > 0 || kind(k) == restore && len(q.inFlight[mark]) > 0 {
			continue // which of the two comes last counts
		}
		for len(q.fresh[k]) > 0 {
			i := q.fresh[k][0]
			q.fresh[k] = q.fresh[k][1:]
			if !q.dropped(i, now) {
				return q.started(i, now)
			}
		}
	}
	return q.nextAgain(now)
}

// nextAgain takes the item that may be tried again; nil: none may be, now.
func (q *Queue) nextAgain(now time.Time) *item {
	var soonest time.Time
	for n := 0; n < len(q.again); n++ {
		i := q.again[n]
		if i.due.After(now) {
			if soonest.IsZero() || i.due.Before(soonest) {
				soonest = i.due
			}
			continue
		}
		q.again = slices.Delete(q.again, n, n+1)
		if !q.dropped(i, now) {
			return q.started(i, now)
		}
		n--
	}
	if !soonest.IsZero() {
		q.wake(soonest)
	}
	return nil
}

// dropped tells whether an item has expired, and ends it then.
func (q *Queue) dropped(i *item, now time.Time) bool {
	expired := !i.expires.IsZero() && !i.expires.After(now)
	if expired {
		i.end(errTooLate)
	}
	return expired
}

// wake has pump called at a time. The mutex is held.
func (q *Queue) wake(at time.Time) {
	if q.timer != nil {
		q.timer.Stop()
	}
	q.timer = time.AfterFunc(time.Until(at), func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.pump()
	})
}

// work sends an item, and then others as long as there are any.
func (q *Queue) work(i *item) {
	returned := false
	defer func() {
		if !returned { // the reporter has ended the goroutine
			q.mu.Lock()
			defer q.mu.Unlock()
			q.sending--
			q.pump()
		}
	}()
	for i != nil {
		q.send(i)
		i = q.another()
	}
	returned = true
}

// another gives a worker its next item; nil: there is none, and the worker is done.
func (q *Queue) another() *item {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ctx.Err() == nil && q.sending <= q.atOnce() {
		if i := q.next(); i != nil {
			q.pump() // an answer may have ended a pause
			return i
		}
	}
	q.sending--
	return nil
}

// send makes one attempt.
func (q *Queue) send(i *item) {
	call.Guard(i.ctx, i.name(), func() error { return i.tell(i.ctx, i.pod) }, func(err error) { q.sent(i, err) })
}

// started gives an item the context of its next attempt. The mutex is held.
func (q *Queue) started(i *item, now time.Time) *item {
	ends := now.Add(attemptFirst << min(i.attempts, 6))
	if !i.expires.IsZero() {
		ends = earlier(ends, i.expires)
	}
	ctx, cancel := context.WithCancelCause(q.ctx)
	ctx, stop := context.WithDeadlineCause(ctx, ends, call.ErrTimeSpent)
	i.attempts++
	i.ctx, i.cancel = ctx, func(cause error) { cancel(cause); stop() }
	q.inFlight[i.kind][i] = true
	return i
}

// sent records what came of an attempt.
func (q *Queue) sent(i *item, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.inFlight[i.kind], i)
	i.cancel(nil)
	if err == nil {
		if i.kind == status {
			q.statuses--
		}
		i.end(nil)
		q.acknowledged()
		return
	}
	if i.kind == status {
		q.failed = fmt.Errorf("pod %s/%s: %w", i.pod.Namespace, i.pod.Name, err)
	}
	if q.failures++; q.failures == 1 {
		klog.FromContext(q.ctx).Error(err, "The API server was not told, will try again", "call", i.kind.String(), "pod", klog.KObj(i.pod))
	}
	pause := min(pauseFirst<<min(i.attempts-1, 10), pauseMost)
	limited := apierrors.IsTooManyRequests(err)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		pause, limited = max(pause, min(time.Duration(seconds)*time.Second, retryAfterMost)), true
	}
	if limited || q.failures >= failuresInARow && !time.Now().Before(q.paused) {
		q.slowDown(pause, limited)
	}
	i.due = time.Now().Add(pause)
	if q.dropped(i, i.due) {
		return
	}
	q.again = append(q.again, i)
}

// slowDown has calls made one at a time, with a pause between them. The mutex is held.
func (q *Queue) slowDown(asked time.Duration, limited bool) {
	q.pause = min(max(2*q.pause, pauseFirst), pauseMost)
	if limited {
		q.pause = max(q.pause, asked)
	}
	q.paused = time.Now().Add(q.pause)
}
