// Package statuses brings what becomes of pods to the API server, beside everything else
// that a drain does: the final status of each pod as it ends, and before that its mark
// that it is not ready.
//
// A [Queue] makes ten calls at a time, final statuses before marks, and each call is one
// attempt for one pod. What fails is tried again, with a pause that doubles from 100 ms
// to 1 s for each pod, or as long as the server asks for. While nothing succeeds, and
// when the server says that it is asked for too much, there is one call at a time, with
// such a pause between two calls. The package knows no drain and no timetable: those who
// wait say for what and until when.
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
	// callsAtOnce is how many calls are made at the same time.
	callsAtOnce = 10
	// failuresInARow is how many calls may fail one after the other, whatever their pods,
	// before the server counts as one that does not answer.
	failuresInARow = callsAtOnce
	// pauseFirst and pauseMost bound the pause after a failure.
	pauseFirst, pauseMost = 100 * time.Millisecond, time.Second
	// attemptFirst bounds a call. It doubles for each attempt of a pod, so that a call that
	// hangs is given up and a server that is slow is waited for.
	attemptFirst = 5 * time.Second
	// deafness is how long after the end of its context a call keeps its place.
	deafness = time.Second
	// retryAfterMost bounds the pause that a server asks for: a shutdown has not much more.
	retryAfterMost = 5 * time.Second
	// patience is how long the last acknowledgement may be ago for those who wait.
	patience = 2500 * time.Millisecond
)

// errTooLate ends a call that nobody wants any more.
var errTooLate = errors.New("it came too late")

// Func tells the API server something of one pod. Nil means acknowledged, or gone.
type Func func(ctx context.Context, pod *v1.Pod) error

// podKey tells pods apart, also those that come back with the name of a former one.
type podKey struct {
	namespace, name string
	uid             types.UID
}

func keyOf(pod *v1.Pod) podKey {
	return podKey{namespace: pod.Namespace, name: pod.Name, uid: pod.UID}
}

// Queue has what is to be told to the API server. Make one with [New]. All methods may
// be called concurrently, and none but Await blocks.
type Queue struct {
	ctx   context.Context
	calls *call.Group

	mu       sync.Mutex // guards all below
	backlog  backlog
	timer    *time.Timer
	sending  int
	inFlight [kinds]map[*item]bool // that are being sent
	statuses map[podKey]*item      // that are not acknowledged
	dropped  map[podKey]*item      // restores that DropRestores has ended
	pace     pace
	failed   error // why a final status was not accepted, the last time

	answers uint64
	last    time.Time     // the last acknowledgement; zero: none yet
	changed chan struct{} // closed at the next one; nil: nobody waits
	vain    time.Duration // was waited in vain since that
}

// New makes a queue whose calls are members of a group and end with ctx.
func New(ctx context.Context, calls *call.Group) *Queue {
	q := &Queue{ctx: ctx, calls: calls, statuses: map[podKey]*item{}, dropped: map[podKey]*item{}}
	for k := range q.inFlight {
		q.inFlight[k] = map[*item]bool{}
	}
	return q
}

// Status tells the final status of a pod, until it is acknowledged; acknowledged is
// called then. Two drains that have killed the same pod tell it once: where it is not
// acknowledged yet, the later function is the one that is called, and both are told.
func (q *Queue) Status(tell Func, pod *v1.Pod, acknowledged func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := &item{kind: status, pod: pod, tell: tell, end: func(error) { acknowledged() }}
	if before := q.statuses[keyOf(pod)]; before != nil {
		first := before.end
		before.tell, before.end = tell, func(err error) { first(err); acknowledged() }
		return
	}
	q.statuses[keyOf(pod)] = i
	q.backlog.add(i)
	q.pump()
}

// Mark is a mark that is to be told. Its future completes when the API server has
// acknowledged it, or with an error when it was dropped.
type Mark struct {
	*call.Future[struct{}]

	queue *Queue
	item  *item
}

// Sent tells whether there was an attempt, so that the API server may have the mark.
func (m *Mark) Sent() bool {
	m.queue.mu.Lock()
	defer m.queue.mu.Unlock()
	return m.item.attempts > 0
}

// Mark tells that a pod is not ready. A mark that is not acknowledged by the time it
// expires is dropped.
func (q *Queue) Mark(tell Func, pod *v1.Pod, expires time.Time) *Mark {
	future, complete := call.NewFuture[struct{}]()
	i := &item{kind: mark, pod: pod, tell: tell, expires: expires, end: func(err error) { complete(struct{}{}, err) }}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.backlog.add(i)
	q.pump()
	return &Mark{Future: future, queue: q, item: i}
}

// Restore takes the mark of a pod back, until it expires.
func (q *Queue) Restore(tell Func, pod *v1.Pod, expires time.Time, failed func(error)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.backlog.add(&item{kind: restore, pod: pod, tell: tell, expires: expires, end: func(err error) {
		if err != nil {
			failed(err)
		}
	}})
	q.pump()
}

// DropRestores forgets what Restore was asked for, and ends what is being sent of it: a
// new shutdown has begun. No mark is sent before that has ended.
func (q *Queue) DropRestores() {
	q.mu.Lock()
	for i := range q.inFlight[restore] {
		q.dropped[keyOf(i.pod)] = i
	}
	for _, i := range q.backlog.of(restore) {
		q.dropped[keyOf(i.pod)] = i
	}
	q.mu.Unlock()
	q.drop(restore)
}

// RestoreDropped restores, until a time, what DropRestores has ended of pods that are
// wanted, and forgets the rest: the new shutdown was cancelled too.
func (q *Queue) RestoreDropped(wanted func(*v1.Pod) bool, expires time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, i := range q.dropped {
		delete(q.dropped, key)
		if wanted(i.pod) {
			q.backlog.add(&item{kind: restore, pod: i.pod, tell: i.tell, expires: expires, end: i.end})
		}
	}
	q.pump()
}

// DropMarks forgets the marks that were not sent, and ends those that are being sent: the
// shutdown was cancelled. Nothing is restored before that has ended.
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

// Acknowledged records that the API server has answered something else.
func (q *Queue) Acknowledged() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.acknowledged()
	q.pump()
}

// Answers is how often something was acknowledged so far.
func (q *Queue) Answers() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.answers
}

// Failure is why a final status was not accepted, the last time; nil: none has failed.
func (q *Queue) Failure() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed
}

// Pending is how many final statuses are not acknowledged.
func (q *Queue) Pending() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.statuses)
}

// Await waits as long as pending says that there is something to wait for, at most until
// a time or the end of ctx, and no longer than the server answers: the last
// acknowledgement, or the beginning of the wait, must be less than 2.5 s ago. What was
// waited in vain before counts, also where the time had ended it, but reserve is left,
// until something is acknowledged again. pending is called anew after each acknowledgement.
// False: it still says so.
func (q *Queue) Await(ctx context.Context, pending func() bool, until time.Time, reserve time.Duration) bool {
	began := time.Now()
	for {
		changed, last, vain := q.watch()
		if !pending() {
			return true
		}
		since := later(began, last)
		enough := since.Add(max(patience-vain, reserve))
		timer := time.NewTimer(time.Until(earlier(enough, until)))
		select {
		case <-changed:
			timer.Stop()
			continue
		case <-ctx.Done():
			timer.Stop()
			return !pending()
		case <-timer.C:
		}
		q.waitedInVain(last, time.Since(since))
		return !pending()
	}
}

// watch gives a channel that the next acknowledgement closes, and what was before it.
func (q *Queue) watch() (changed <-chan struct{}, last time.Time, vain time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.changed == nil {
		q.changed = make(chan struct{})
	}
	return q.changed, q.last, q.vain
}

// waitedInVain records that somebody waits no longer, if nothing was acknowledged since.
func (q *Queue) waitedInVain(last time.Time, waited time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last.Equal(last) {
		q.vain = min(q.vain+max(waited, 0), patience)
	}
}

// acknowledged records an answer. The mutex is held.
func (q *Queue) acknowledged() {
	q.answers++
	q.last, q.vain = time.Now(), 0
	q.pace.acknowledged()
	q.wakeAll()
}

// wakeAll has those who wait look again. The mutex is held.
func (q *Queue) wakeAll() {
	if q.changed != nil {
		close(q.changed)
		q.changed = nil
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
