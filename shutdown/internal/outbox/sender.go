package outbox

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/times"
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
	users int
}

// newAttempt returns the context of a call, with an end in time, and what ends it before that.
func (op *opening) newAttempt(until time.Time) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(op.ctx)
	ctx, stop := context.WithDeadlineCause(ctx, until, call.ErrTimeSpent)
	return ctx, func(cause error) { cancel(cause); stop() }
}

// flight is one call for one debt.
type flight struct {
	debt     *debt
	pod      *v1.Pod // names the call
	final    func() *v1.Pod
	begun    time.Time
	requests int           // that the call makes
	limit    time.Duration // how long each request may take
	expires  bool          // a mark expires before that
	ctx      context.Context
	end      context.CancelCauseFunc
	unwatch  func() bool // stops the watch for the end of ctx

	err        error // the result of the call
	unanswered bool  // the call has used all of its time without an answer
	unwanted   bool  // the call was ended before that: its error says nothing about the API server
	limited    time.Duration
}

// newFlight returns the next call for a debt. An answer in the last instant of its time counts.
func newFlight(op *opening, d *debt, now time.Time, limit time.Duration) *flight {
	f := &flight{debt: d, pod: d.pod, final: d.final, begun: now, requests: d.requests(), limit: limit}
	ends := now.Add(time.Duration(f.requests)*limit + 1)
	if f.expires = d.expired(ends); f.expires {
		ends = d.expires
	}
	f.ctx, f.end = op.newAttempt(ends)
	d.flight, d.calls = f, min(d.calls, math.MaxUint16-1)+1
	return f
}

func (f *flight) String() string {
	return "Options.Reporter." + f.debt.kind.String() + " for pod " + f.pod.Namespace + "/" + f.pod.Name
}

// sender makes the calls of an outbox that is open: for pods ten at a time, and one for the node.
type sender struct {
	changed     func()
	publish     func(ctx context.Context, state any) error // nil: nothing is published
	publishTime time.Duration                              // bounds one call of publish

	mu         sync.Mutex // guards all below
	server     *server
	book       *book
	state      *Publication            // the newest node state, until it is published; nil: it is
	publishing context.CancelCauseFunc // ends the call for a node state; nil: none is under way
	open       *opening                // nil: nothing is sent
	flying     map[*flight]bool        // the calls that count as one of callsAtOnce
	timer      *time.Timer             // of the next call; nil: none was ever planned
}

// join adds a user to the current opening. If there is none it begins one.
func (s *sender) join(ctx context.Context) *opening {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		ctx, end := context.WithCancelCause(context.WithoutCancel(ctx))
		s.open = &opening{ctx: ctx, end: end}
		if s.state != nil {
			s.state.due = time.Time{}
		}
	}
	s.open.users++
	s.fill()
	return s.open
}

// leave removes a user. With the last one the opening and the contexts of its calls end.
func (s *sender) leave(op *opening) *call.Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op.users--; op.users > 0 {
		return nil
	}
	s.open = nil
	op.end(errWithdrawn)
	return &op.calls
}

// fill starts the calls that are due, and has those that are due later started then. The mutex is
// held.
func (s *sender) fill() {
	if s.open == nil {
		return
	}
	next := times.Earlier(s.startPublishing(), s.startFlights())
	if s.timer != nil {
		s.timer.Stop()
	}
	if !next.IsZero() {
		s.timer = time.AfterFunc(time.Until(next), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.fill()
		})
	}
}

// startFlights starts the calls for pods that are due. It returns when the next one may be, zero if
// that is unknown.
func (s *sender) startFlights() (next time.Time) {
	for len(s.flying) < callsAtOnce {
		now := time.Now()
		if now.Before(s.server.until) {
			return s.server.until
		}
		d, soonest := s.book.next(now)
		if d == nil {
			return soonest
		}
		s.server.starts(now)
		f := newFlight(s.open, d, now, s.server.limit(d.cut))
		s.flying[f] = true
		f.unwatch = context.AfterFunc(f.ctx, func() { time.AfterFunc(ignoredContextTime, func() { s.abandon(f) }) })
		s.open.calls.Go(f.String, func() { s.fly(f) })
	}
	return time.Time{}
}

// fly makes one call. A mark belongs on record as soon as the API server may have it. The pause
// that an error asks for is read inside Guard, because methods of the error are the embedder's
// code too.
func (s *sender) fly(f *flight) {
	call.Guard(f.ctx, f.String(), func() error {
		if f.debt.kind == KindMark {
			s.changed()
		}
		err := s.book.calls[f.debt.kind](f.ctx, f.final().DeepCopy())
		f.limited = suggestedPause(err)
		return err
	}, func(err error) { s.land(f, err) })
}

// land handles the result of a call.
func (s *sender) land(f *flight, err error) {
	cause := context.Cause(f.ctx)
	f.err = err
	f.unanswered = err != nil && !f.expires && errors.Is(cause, call.ErrTimeSpent)
	f.unwanted = err != nil && cause != nil && !f.unanswered
	f.unwatch()
	f.end(nil)
	s.mu.Lock()
	over, first := s.book.landed(f, time.Now()), false
	if err == nil {
		s.acknowledged(f.begun, f.requests)
	} else if !f.unwanted {
		first = s.server.failed(f)
	}
	delete(s.flying, f)
	s.fill()
	s.mu.Unlock()
	if first {
		klog.FromContext(f.ctx).Error(err, "The API server was not told, will try again", "call", f.debt.kind.String(), "pod", klog.KObj(f.pod))
	}
	if over {
		s.changed()
	}
}

// acknowledged handles the acknowledgement of a call that began at a time and made a number of
// requests. Calls that take longer than it is now known to be worth are ended. The mutex is held.
func (s *sender) acknowledged(begun time.Time, requests int) {
	s.server.acknowledged(begun, requests)
	for f := range s.flying {
		if time.Since(f.begun) > time.Duration(f.requests)*s.server.limit(f.debt.cut) {
			f.end(call.ErrTimeSpent)
		}
	}
}

// abandon lets another call start in place of one that goes on after the end of its context. The
// result of that call still counts.
func (s *sender) abandon(f *flight) {
	s.mu.Lock()
	goesOn := s.flying[f]
	delete(s.flying, f)
	s.fill()
	s.mu.Unlock()
	if goesOn {
		klog.FromContext(f.ctx).Error(context.Cause(f.ctx), "A call ignores the end of its context", "call", f.String())
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
