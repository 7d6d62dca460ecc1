package statuses

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// pump begins as many calls as may be made now. The mutex is held.
func (q *Queue) startCalls() {
	for q.ctx.Err() == nil && q.sending < q.pace.atOnce() {
		i := q.next()
		if i == nil {
			return
		}
		q.sending++
		var at atomic.Pointer[item]
		at.Store(i)
		q.calls.Go(func() string { return at.Load().name() }, func() { q.work(&at) })
	}
}

// next takes the item that is to be sent next; nil: none is, now. Of a mark and its taking
// back the one that comes last counts, so neither is sent while the other is. The mutex is
// held.
func (q *Queue) next() *item {
	now := time.Now()
	if now.Before(q.pace.until) {
		q.wake(q.pace.until)
		return nil
	}
	i, soonest := q.backlog.next(now, func(k kind) bool {
		return k == mark && len(q.inFlight[restore]) > 0 || k == restore && len(q.inFlight[mark]) > 0
	})
	if i != nil {
		return q.startAttempt(i, now)
	}
	if !soonest.IsZero() {
		q.wake(soonest)
	}
	return nil
}

// wake has pump called at a time. The mutex is held.
func (q *Queue) wake(at time.Time) {
	if q.timer != nil {
		q.timer.Stop()
	}
	q.timer = time.AfterFunc(time.Until(at), func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.startCalls()
	})
}

// work sends an item, and then others as long as there are any. at is the one that is
// being sent.
func (q *Queue) work(at *atomic.Pointer[item]) {
	returned, replaced := false, false
	defer func() {
		if !returned { // the reporter has ended the goroutine
			q.mu.Lock()
			defer q.mu.Unlock()
			if !replaced {
				q.sending--
			}
			q.startCalls()
		}
	}()
	for i := at.Load(); i != nil; i = q.nextForWorker(replaced) {
		at.Store(i)
		q.send(i, &replaced)
	}
	returned = true
}

// another gives a worker its next item; nil: there is none, and the worker is done. So it
// is where it was replaced while it sent the last one.
func (q *Queue) nextForWorker(replaced bool) *item {
	q.mu.Lock()
	defer q.mu.Unlock()
	if replaced {
		q.startCalls()
		return nil
	}
	if q.ctx.Err() == nil && q.sending <= q.pace.atOnce() {
		if i := q.next(); i != nil {
			q.startCalls() // an answer may have ended a pause
			return i
		}
	}
	q.sending--
	return nil
}

// send makes one attempt; replaced becomes true if another worker has taken this one's place
// meanwhile. The error is looked into where a panic is caught: its methods
// are the embedder's code too.
func (q *Queue) send(i *item, replaced *bool) {
	q.mu.Lock()
	tell := i.tell
	q.mu.Unlock()
	var limited time.Duration
	call.Guard(i.ctx, i.name(), func() error {
		err := tell(i.ctx, i.pod)
		limited = suggestedPause(err)
		return err
	}, func(err error) { *replaced = q.endAttempt(i, err, limited) })
}

// started gives an item the context of its next attempt. The mutex is held.
func (q *Queue) startAttempt(i *item, now time.Time) *item {
	ends := now.Add(attemptFirst << min(i.attempts, 6))
	if !i.expires.IsZero() {
		ends = minTime(ends, i.expires)
	}
	ctx, cancel := context.WithCancelCause(q.ctx)
	ctx, stop := context.WithDeadlineCause(ctx, ends, call.ErrTimeSpent)
	i.attempts++
	i.ctx, i.cancel = ctx, func(cause error) { cancel(cause); stop() }
	q.inFlight[i.kind][i] = true
	i.unwatch = context.AfterFunc(ctx, func() { time.AfterFunc(ignoredContextTime, func() { q.freeSlot(ctx, i) }) })
	return i
}

// giveUp lets another item take the place of one whose call goes on although its context has
// ended. What comes of it counts all the same.
func (q *Queue) freeSlot(attempt context.Context, i *item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.inFlight[i.kind][i] || i.ctx != attempt {
		return
	}
	i.ignoresContext = true
	q.sending--
	klog.FromContext(q.ctx).Error(context.Cause(attempt), "A call ignores the end of its context", "call", i.name())
	q.startCalls()
}

// sent records what came of an attempt. limited is the pause that the error asks for.
// replaced tells whether another worker has taken the place of the one that has made it.
func (q *Queue) endAttempt(i *item, err error, limited time.Duration) (replaced bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	replaced, i.ignoresContext = i.ignoresContext, false
	delete(q.inFlight[i.kind], i)
	i.unwatch()
	i.cancel(nil)
	if err == nil {
		q.removeAcknowledged(i)
		i.done(nil)
		q.acknowledged()
		return replaced
	}
	if i.kind == status {
		q.lastErr = fmt.Errorf("pod %s/%s: %w", i.pod.Namespace, i.pod.Name, err)
	}
	if q.pace.failed(limited) {
		klog.FromContext(q.ctx).Error(err, "The API server was not told, will try again", "call", i.kind.String(), "pod", klog.KObj(i.pod))
	}
	i.due = time.Now().Add(max(min(pauseFirst<<min(i.attempts-1, 10), pauseMost), limited))
	if !i.dropIfExpired(i.due) {
		q.backlog.retry(i)
	}
	return replaced
}

// forget lets go of what is kept for a pod until its item was acknowledged.
func (q *Queue) removeAcknowledged(i *item) {
	if i.kind == status {
		delete(q.statuses, keyOf(i.pod))
	}
	if i.kind == restore {
		delete(q.droppedRestores, keyOf(i.pod))
	}
}

// limit is the pause that an error of a server asks for; 0: none.
func suggestedPause(err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return min(max(time.Duration(seconds)*time.Second, pauseFirst), retryAfterMost)
	}
	if apierrors.IsTooManyRequests(err) {
		return pauseMost
	}
	return 0
}
