package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// errSessionLost ends a session that has closed its events.
var errSessionLost = errors.New("the host's session was lost")

// errNoLock is the error of an Inhibit that returned neither a lock nor an error.
var errNoLock = errors.New("the host has given no lock")

// session is one session with the host. It subscribes first, then reads the pending shutdown, then
// requests the delay, then takes the lock: in this order no event is missed. Two goroutines share
// it: listen hears the host, and hold asks it.
type session struct {
	*sessions

	conn    source.Session
	answers chan answer // from hold to listen
}

// answer is the answer of Pending.
type answer struct {
	pending  *source.Event // nil: no shutdown is pending
	known    bool          // the host can tell
	received time.Time
	told     chan struct{} // closed when the listener has acted on it
}

// run runs the session until it is lost. It returns the error of Close and the reason of the loss.
func (s *session) run(parent context.Context) (closeErr, err error) {
	ctx, lose := context.WithCancelCause(parent)
	defer lose(nil)
	var listening sync.WaitGroup
	closed := make(chan struct{})
	events, err := ask(ctx, s.caller, "Events", answerTimeout, func(context.Context) (<-chan source.Event, error) {
		return s.conn.Events(), nil
	}, nil)
	if err == nil {
		listening.Go(func() {
			s.listen(ctx, events)
			lose(errSessionLost)
			discard(events, closed)
		})
		call.Guard(ctx, "an error of Options.Source", func() error { return s.hold(ctx) }, func(of error) { err = of })
	}
	lose(err)
	if parent.Err() == nil {
		s.trouble.lose(err) // Close may take its time
	}
	_, closeErr = ask(context.WithoutCancel(parent), s.caller, "Close", closeTime, func(context.Context) (struct{}, error) {
		return struct{}{}, s.conn.Close()
	}, nil)
	close(closed)
	listening.Wait()
	if closeErr != nil {
		closeErr = fmt.Errorf("failed to close the session with the host: %w", closeErr)
	}
	return closeErr, err
}

// listen tells the listener of the session's events, in order, until they are closed or ctx ends.
// An event that was sent before the answer of Pending came is newer than the answer, which is not
// told then.
func (s *session) listen(ctx context.Context, events <-chan source.Event) {
	heard := false
	tell := func(event source.Event, open bool) bool {
		if !open || ctx.Err() != nil {
			return false
		}
		heard = true
		s.contact.reached.Store(true)
		s.listener.HostEvent(event, time.Now())
		return true
	}
	tellSent := func() bool {
		for {
			select {
			case event, open := <-events:
				if !tell(event, open) {
					return false
				}
			default:
				return true
			}
		}
	}
	for {
		select {
		case event, open := <-events:
			if !tell(event, open) {
				return
			}
		case a := <-s.answers:
			if !tellSent() {
				return
			}
			if !heard {
				s.listener.HostPending(a.pending, a.known, a.received)
			}
			close(a.told)
		case <-ctx.Done():
			return
		}
	}
}

// discard drops the events of a session that is over, so that Close does not wait for a reader.
func discard(events <-chan source.Event, closed <-chan struct{}) {
	for {
		select {
		case _, open := <-events:
			if !open {
				return
			}
		case <-closed:
			return
		}
	}
}

// hold reads the pending shutdown and then holds the lock until the session is lost, or until a
// call has been given up. A host that waits for less than the pods' time is asked again from time
// to time.
func (s *session) hold(ctx context.Context) error {
	if err := s.readPending(ctx); err != nil {
		return err
	}
	s.contact.allow(delayTimeout)
	var lastErr error // of the last task; one that was nothing to do changes nothing
	for ctx.Err() == nil {
		done, err := s.work(ctx)
		if done != taskRest || err != nil {
			lastErr = err
		}
		s.trouble.set(errors.Join(lastErr, s.delay.capped))
		s.contact.tried()
		if errors.Is(err, errHangs) {
			return err
		}
		s.waitForTask(ctx, done, err)
	}
	return context.Cause(ctx)
}

// readPending tells the listener which shutdown is pending, if any, and returns when it has acted on
// that. A host that cannot know whether a shutdown is pending returns an error that wraps
// errors.ErrUnsupported, which does not fail the session.
func (s *session) readPending(ctx context.Context) error {
	pending, err := ask(ctx, s.caller, "Pending", hangTime, s.conn.Pending, nil)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("failed to read whether a shutdown is under way: %w", err)
	}
	if err != nil || pending != nil && pending.Cancelled {
		pending = nil
	}
	s.contact.reached.Store(true)
	s.lock.beginSession()
	a := answer{pending: pending, known: err == nil, received: time.Now(), told: make(chan struct{})}
	select {
	case s.answers <- a:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-a.told:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// work does the next task and returns it. A request for the delay that fails does not keep it from
// taking the lock.
func (s *session) work(ctx context.Context) (task, error) {
	next, epoch := s.lock.next()
	var delayErr, lockErr error
	if next == taskTake || next == taskKeep && s.delay.unmet() {
		delayErr = s.delay.ask(ctx, s.caller, s.conn)
		s.contact.allow(answerTimeout)
		next, epoch = s.lock.next() // a shutdown may have begun meanwhile
	}
	switch next {
	case taskTake:
		lockErr = s.inhibit(ctx, epoch, false)
	case taskAdopt:
		lockErr = s.inhibit(ctx, epoch, true)
		s.lock.endAdoption()
	default:
	}
	return next, errors.Join(delayErr, lockErr)
}

// inhibit takes the lock. adopting says that a shutdown is under way.
func (s *session) inhibit(ctx context.Context, epoch uint64, adopting bool) error {
	given, err := ask(ctx, s.caller, "Inhibit", hangTime, s.conn.Inhibit, drop)
	if err == nil && given == nil {
		err = errNoLock
	}
	if err != nil {
		return fmt.Errorf("failed to inhibit the shutdown: %w", err)
	}
	if err := s.lock.take(ctx, given, epoch, adopting); err != nil { // of a lock that is not needed any more
		klog.FromContext(ctx).Error(err, "Failed to close the former lock")
	}
	return nil
}

// waitForTask waits for the next task, or until the host is to be asked again.
func (s *session) waitForTask(ctx context.Context, done task, err error) {
	wanted := done == taskTake || done == taskKeep
	switch {
	case wanted && err != nil:
		wait(ctx, reconnectPause, s.lock.wake)
	case wanted && s.delay.capped != nil:
		wait(ctx, s.delay.pause.delay(), s.lock.wake)
	default:
		s.delay.pause.reset()
		select {
		case <-s.lock.wake:
		case <-ctx.Done():
		}
	}
}
