// Package statuses sends the final statuses and the readiness marks of pods to the API server
// while a drain goes on.
//
// A [Queue] makes ten calls at a time, final statuses before marks. Each call is one attempt for
// one pod. A failed call is tried again, with a pause that doubles from 100 ms to 1 s for each
// pod, or for as long as the server asks. After ten failures in a row, or when the server answers
// that it gets too many requests, the queue makes one call at a time, with such a pause between
// two calls. The package does not know the drain or its timetable: callers of [Queue.Await] say
// what they wait for and until when.
package statuses

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

const (
	// callsAtOnce is the largest number of calls that run at the same time.
	callsAtOnce = 10
	// failuresInARow is how many calls in a row, of any pods, fail before the server counts as
	// one that does not answer.
	failuresInARow = callsAtOnce
	// pauseFirst and pauseMost bound the pause after a failed call.
	pauseFirst, pauseMost = 100 * time.Millisecond, time.Second
	// attemptFirst bounds the first call for a pod. The bound doubles with each further call, so
	// that a call that hangs is given up soon and a slow server gets time later.
	attemptFirst = 5 * time.Second
	// ignoredContextTime is how long after the end of its context a call still counts as one of
	// callsAtOnce.
	ignoredContextTime = time.Second
	// retryAfterMost bounds the pause that a server asks for. A shutdown has little more time.
	retryAfterMost = 5 * time.Second
	// answerPatience bounds the time since the last acknowledgement in Await.
	answerPatience = 2500 * time.Millisecond
)

// errTooLate ends an item that has expired or was dropped.
var errTooLate = errors.New("it came too late")

// Func makes one call for one pod. Nil means that the API server has accepted it or has no such
// pod.
type Func func(ctx context.Context, pod *v1.Pod) error

// podKey identifies a pod, and tells it from an earlier one of the same name.
type podKey struct {
	namespace, name string
	uid             types.UID
}

func keyOf(pod *v1.Pod) podKey {
	return podKey{namespace: pod.Namespace, name: pod.Name, uid: pod.UID}
}

// Queue sends items to the API server. Make one with [New]. All methods may be called
// concurrently. Only Await blocks.
type Queue struct {
	ctx   context.Context
	calls *call.Group

	mu              sync.Mutex // guards all below
	backlog         backlog
	timer           *time.Timer
	sending         int
	inFlight        [kinds]map[*item]bool // items that are being sent
	statuses        map[podKey]*item      // final statuses that are not acknowledged
	droppedRestores map[podKey]*item      // that a later RestoreDropped may send again
	pace            pace
	lastErr         error // the lastAnswer error of a final status

	answers    uint64
	lastAnswer time.Time     // the time of the lastAnswer acknowledgement; zero: none yet
	answered   chan struct{} // closed at the next acknowledgement; nil: nobody waits
	unanswered time.Duration // how long Await has waited in unanswered since lastAnswer
}

// New returns a queue whose calls run in a group and end with ctx.
func New(ctx context.Context, calls *call.Group) *Queue {
	q := &Queue{ctx: ctx, calls: calls, statuses: map[podKey]*item{}, droppedRestores: map[podKey]*item{}}
	for k := range q.inFlight {
		q.inFlight[k] = map[*item]bool{}
	}
	return q
}

// Status sends the final status of a pod until it is acknowledged, and then calls acknowledged.
// If another drain has queued a status of the same pod, it is sent once: with the newer function,
// and both drains are told.
func (q *Queue) Status(tell Func, pod *v1.Pod, acknowledged func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := &item{kind: status, pod: pod, tell: tell, done: func(error) { acknowledged() }}
	if before := q.statuses[keyOf(pod)]; before != nil {
		first := before.done
		before.tell, before.done = tell, func(err error) { first(err); acknowledged() }
		return
	}
	q.statuses[keyOf(pod)] = i
	q.backlog.add(i)
	q.startCalls()
}

// Mark is a queued mark that a pod is not ready. The future completes when the API server has
// acknowledged the mark, or with an error when the mark is dropped.
type Mark struct {
	*call.Future[struct{}]

	queue *Queue
	item  *item
}

// Sent reports whether a call was made, so that the API server may have the mark.
func (m *Mark) Sent() bool {
	m.queue.mu.Lock()
	defer m.queue.mu.Unlock()
	return m.item.attempts > 0
}

// Mark sends a mark that a pod is not ready. The mark is dropped if it is not acknowledged before
// it expires.
func (q *Queue) Mark(tell Func, pod *v1.Pod, expires time.Time) *Mark {
	future, complete := call.NewFuture[struct{}]()
	i := &item{kind: mark, pod: pod, tell: tell, expires: expires, done: func(err error) { complete(struct{}{}, err) }}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.backlog.add(i)
	q.startCalls()
	return &Mark{Future: future, queue: q, item: i}
}

// Restore reverts the mark of a pod. failed is called if that is not acknowledged before it
// expires.
func (q *Queue) Restore(tell Func, pod *v1.Pod, expires time.Time, failed func(error)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.backlog.add(&item{kind: restore, pod: pod, tell: tell, expires: expires, done: func(err error) {
		if err != nil {
			failed(err)
		}
	}})
	q.startCalls()
}

// DropRestores drops the queued restores and ends the calls of those that are being sent. It is
// called when a new shutdown begins. No mark is sent before these calls have returned.
func (q *Queue) DropRestores() {
	q.mu.Lock()
	for i := range q.inFlight[restore] {
		q.droppedRestores[keyOf(i.pod)] = i
	}
	for _, i := range q.backlog.of(restore) {
		q.droppedRestores[keyOf(i.pod)] = i
	}
	q.mu.Unlock()
	q.drop(restore)
}

// RestoreDropped queues again the restores that DropRestores has dropped, of the pods that wanted
// accepts, and forgets the others. It is called when the new shutdown is cancelled too.
func (q *Queue) RestoreDropped(wanted func(*v1.Pod) bool, expires time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, i := range q.droppedRestores {
		delete(q.droppedRestores, key)
		if wanted(i.pod) {
			q.backlog.add(&item{kind: restore, pod: i.pod, tell: i.tell, expires: expires, done: i.done})
		}
	}
	q.startCalls()
}

// DropMarks drops the queued marks and ends the calls of those that are being sent. It is called
// when the shutdown is cancelled. No restore is sent before these calls have returned.
func (q *Queue) DropMarks() { q.drop(mark) }

func (q *Queue) drop(k kind) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for i := range q.inFlight[k] {
		i.expires = now
		i.cancel(errTooLate)
	}
	q.backlog.drop(k)
}

// Acknowledged records that the API server has answered a call that the queue did not make.
func (q *Queue) Acknowledged() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.acknowledged()
	q.startCalls()
}

// Answers returns the number of acknowledgements so far.
func (q *Queue) Answers() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.answers
}

// Failure returns the last error of a final status; nil if none has failed.
func (q *Queue) Failure() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lastErr
}

// Pending returns the number of final statuses that are not acknowledged.
func (q *Queue) Pending() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.statuses)
}

// Await waits until pending returns false, which it calls again after each acknowledgement. It
// gives up at a time, at the end of ctx, or when the server does not answer: 2.5 s after the last
// acknowledgement or the beginning of the wait, whichever is later. Earlier waits in vain since
// the last acknowledgement shorten these 2.5 s, down to reserve. Await returns false if pending
// still returns true.
func (q *Queue) Await(ctx context.Context, pending func() bool, until time.Time, reserve time.Duration) bool {
	start := time.Now()
	for {
		answered, lastAnswer, unanswered := q.watch()
		if !pending() {
			return true
		}
		since := maxTime(start, lastAnswer)
		giveUp := since.Add(max(answerPatience-unanswered, reserve))
		timer := time.NewTimer(time.Until(minTime(giveUp, until)))
		select {
		case <-answered:
			timer.Stop()
			continue
		case <-ctx.Done():
			timer.Stop()
			return !pending()
		case <-timer.C:
		}
		q.addUnanswered(lastAnswer, time.Since(since))
		return !pending()
	}
}

// watch returns a channel that the next acknowledgement closes, and the state before it.
func (q *Queue) watch() (answered <-chan struct{}, lastAnswer time.Time, unanswered time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.answered == nil {
		q.answered = make(chan struct{})
	}
	return q.answered, q.lastAnswer, q.unanswered
}

// addUnanswered records a wait in vain, unless something was acknowledged meanwhile.
func (q *Queue) addUnanswered(lastAnswer time.Time, waited time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lastAnswer.Equal(lastAnswer) {
		q.unanswered = min(q.unanswered+max(waited, 0), answerPatience)
	}
}

// acknowledged records an acknowledgement. The mutex is held.
func (q *Queue) acknowledged() {
	q.answers++
	q.lastAnswer, q.unanswered = time.Now(), 0
	q.pace.acknowledged()
	q.wakeWaiters()
}

// wakeWaiters makes every Await look again. The mutex is held.
func (q *Queue) wakeWaiters() {
	if q.answered != nil {
		close(q.answered)
		q.answered = nil
	}
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
