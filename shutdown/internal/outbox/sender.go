package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

const (
	// callsAtOnce is the largest number of calls for pods that run at the same time.
	callsAtOnce = 10
	// ignoredContextTime is how long after the end of its context a call still counts as one of
	// them.
	ignoredContextTime = time.Second
	// retryAfterMost bounds the pause that a server asks for. A shutdown has little more time.
	retryAfterMost = 5 * time.Second
)

// opening is a time in which the outbox sends.
type opening struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	calls call.Group
	users int // guarded by the sender
}

// flight is one call for one debt.
type flight struct {
	debt     *debt
	pod      *v1.Pod // names the call
	content  func() *v1.Pod
	begun    time.Time
	requests int           // that the call makes
	cut      uint8         // calls for the debt before that ended without an answer
	limit    time.Duration // how long each request may take
	expires  bool          // a mark expires before that
	ctx      context.Context
	end      context.CancelCauseFunc

	unwatch func() bool // stops the watch for the end of ctx

	err     error // the result of the call
	cause   error // why ctx had ended by then; nil: it had not
	limited time.Duration
}

// newFlight returns the next call for a debt.
func newFlight(ctx context.Context, d *debt, now time.Time, limit time.Duration) *flight {
	f := &flight{debt: d, pod: d.pod, content: d.content(), begun: now, requests: d.requests(), cut: d.cut, limit: limit}
	ends := now.Add(time.Duration(f.requests)*limit + 1) // an answer in the last instant comes in time
	if f.expires = d.expired(ends); f.expires {
		ends = d.expires
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, stop := context.WithDeadlineCause(ctx, ends, call.ErrTimeSpent)
	f.ctx, f.end = ctx, func(cause error) { cancel(cause); stop() }
	return f
}

// String names the call.
func (f *flight) String() string {
	return "Options.Reporter." + f.debt.kind.String() + " for pod " + f.pod.Namespace + "/" + f.pod.Name
}

// isUnanswered reports whether the call has used all of its time without an answer.
func (f *flight) isUnanswered() bool {
	return f.err != nil && !f.expires && errors.Is(f.cause, call.ErrTimeSpent)
}

// isUnwanted reports whether the call was ended before that, so that its error says nothing about
// the API server.
func (f *flight) isUnwanted() bool { return f.err != nil && f.cause != nil && !f.isUnanswered() }

// sender makes the calls of an outbox that is open, ten at a time. Its functions are called
// without its mutex, except take.
type sender struct {
	server *server
	// take returns the next call, and nil if none is due. Then soonest is the time of the next
	// one, zero if that is unknown.
	take    func(ctx context.Context) (f *flight, soonest time.Time)
	deliver func(*flight) error // makes the call
	landed  func(*flight)       // is told of the result

	mu     sync.Mutex       // guards all below
	open   *opening         // nil: nothing is sent
	flying map[*flight]bool // the calls that count as one of callsAtOnce
	timer  *time.Timer
}

// join adds a user to the current opening. If there is none it begins one.
func (s *sender) join(ctx context.Context) *opening {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		ctx, end := context.WithCancelCause(context.WithoutCancel(ctx))
		s.open = &opening{ctx: ctx, end: end}
	}
	s.open.users++
	s.fill()
	return s.open
}

// leave removes a user. With the last one the opening and the contexts of its calls end.
func (s *sender) leave(op *opening) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op.users--; op.users > 0 {
		return false
	}
	s.open = nil
	op.end(errWithdrawn)
	if s.timer != nil {
		s.timer.Stop()
	}
	return true
}

// start starts the calls that are due.
func (s *sender) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fill()
}

// fill is start with the mutex held.
func (s *sender) fill() {
	for s.open != nil && len(s.flying) < callsAtOnce {
		now := time.Now()
		if until := s.server.mayStart(); now.Before(until) {
			s.wake(until)
			return
		}
		f, soonest := s.take(s.open.ctx)
		if f == nil {
			if !soonest.IsZero() {
				s.wake(soonest)
			}
			return
		}
		s.server.starts(now)
		s.flying[f] = true
		f.unwatch = context.AfterFunc(f.ctx, func() { time.AfterFunc(ignoredContextTime, func() { s.abandon(f) }) })
		s.open.calls.Go(f.String, func() { s.fly(f) })
	}
}

// wake schedules the next start. The mutex is held.
func (s *sender) wake(at time.Time) {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(time.Until(at), s.start)
}

// fly makes one call. The pause that an error asks for is read inside Guard, because methods of
// the error are the embedder's code too.
func (s *sender) fly(f *flight) {
	call.Guard(f.ctx, f.String(), func() error {
		err := s.deliver(f)
		f.limited = suggestedPause(err)
		return err
	}, func(err error) { s.land(f, err) })
}

// land handles the result of a call.
func (s *sender) land(f *flight, err error) {
	f.err, f.cause = err, context.Cause(f.ctx)
	f.unwatch()
	f.end(nil)
	s.landed(f)
	switch {
	case err == nil:
		s.acknowledged(f.begun, f.requests)
	case f.isUnwanted():
	case s.server.failed(f):
		klog.FromContext(f.ctx).Error(err, "The API server was not told, will try again", "call", f.debt.kind.String(), "pod", klog.KObj(f.pod))
	}
	s.release(f)
}

// acknowledged handles the acknowledgement of a call that began at a time and made a number of
// requests. Calls that take longer than it is now known to be worth are ended.
func (s *sender) acknowledged(begun time.Time, requests int) {
	s.server.acknowledged(begun, requests)
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.flying {
		if time.Since(f.begun) > time.Duration(f.requests)*s.server.limit(f.cut) {
			f.end(call.ErrTimeSpent)
		}
	}
	s.fill()
}

// abandon lets another call start in place of one that goes on after the end of its context. The
// result of that call still counts.
func (s *sender) abandon(f *flight) {
	if s.release(f) {
		klog.FromContext(f.ctx).Error(context.Cause(f.ctx), "A call ignores the end of its context", "call", f.String())
	}
}

// release lets another call start in place of one. It returns false if that was done before.
func (s *sender) release(f *flight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.flying[f] {
		return false
	}
	delete(s.flying, f)
	s.fill()
	return true
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
