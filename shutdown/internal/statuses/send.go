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

// startCalls starts as many calls as the pace allows now. The mutex is held.
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

// next takes the next item to send from the backlog; nil if none is due. A mark is not sent while
// a restore is in flight, nor a restore while a mark is: the later one of the two must reach the
// server last. The mutex is held.
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

// wake schedules startCalls. The mutex is held.
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

// work sends an item and then further ones as long as there are any. at holds the item that is
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

// nextForWorker returns the next item of a worker. It returns nil if no item is due, or if
// another worker has taken this one's place during its last call: then the worker ends.
func (q *Queue) nextForWorker(replaced bool) *item {
	q.mu.Lock()
	defer q.mu.Unlock()
	if replaced {
		q.startCalls()
		return nil
	}
	if q.ctx.Err() == nil && q.sending <= q.pace.atOnce() {
		if i := q.next(); i != nil {
			q.startCalls() // an acknowledgement may have ended a pause
			return i
		}
	}
	q.sending--
	return nil
}

// send makes one call. replaced becomes true if another worker has taken this one's place
// meanwhile. The pause that an error asks for is read inside Guard, because methods of the error
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

// startAttempt gives an item the context of its next call. The mutex is held.
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

// freeSlot lets another call start in place of one that goes on after the end of its context. The
// result of that call still counts.
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

// endAttempt records the result of a call. limited is the pause that the error asks for. replaced
// reports whether another worker has taken the place of the one that made the call.
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

// removeAcknowledged removes an acknowledged item from the maps of the queue.
func (q *Queue) removeAcknowledged(i *item) {
	if i.kind == status {
		delete(q.statuses, keyOf(i.pod))
	}
	if i.kind == restore {
		delete(q.droppedRestores, keyOf(i.pod))
	}
}

// suggestedPause returns the pause that an error of the API server asks for; 0 if none.
func suggestedPause(err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return min(max(time.Duration(seconds)*time.Second, pauseFirst), retryAfterMost)
	}
	if apierrors.IsTooManyRequests(err) {
		return pauseMost
	}
	return 0
}
