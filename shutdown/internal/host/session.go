package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// errSessionLost ends a session that has closed its events.
var errSessionLost = errors.New("the host's session was lost")

// session is one session with the host. It subscribes first, then reads the pending shutdown, then
// requests the delay, then takes the lock: in this order no event is missed. Two goroutines share
// it: listen hears the host, and hold asks it.
type session struct {
	*Host

	conn    source.Session
	answers chan answer // from hold to listen
}

// answer tells the listener of the answer of Pending, unless that is old.
type answer func(old bool)

// run runs the session until it is lost. It returns the error of Close and the reason of the loss.
func (s *session) run(parent context.Context) (closeErr, err error) {
	ctx, lose := context.WithCancelCause(parent)
	defer lose(nil)
	var listening sync.WaitGroup
	closed := make(chan struct{})
	events, err := ask(ctx, s.contact, "Events", answerTimeout, func(context.Context) (<-chan source.Event, error) {
		return s.conn.Events(), nil
	})
	if err == nil && events == nil {
		err = errors.New("the session has no channel of events")
	}
	if err == nil {
		listening.Add(1)
		go func() {
			defer listening.Done()
			s.listen(ctx, events, closed)
			if parent.Err() == nil {
				s.contact.lose(errSessionLost) // hold may be in a call, which has a second to return
			}
			lose(errSessionLost)
		}()
		call.Guard(ctx, "an error of Options.Source", func() error { return s.hold(ctx) }, func(of error) { err = of })
	}
	lose(err)
	if parent.Err() == nil {
		s.contact.lose(err) // Close may take its time
	}
	_, closeErr = ask(context.WithoutCancel(parent), s.contact, "Close", closeTime, func(context.Context) (struct{}, error) {
		return struct{}{}, s.conn.Close()
	})
	close(closed)
	listening.Wait()
	if closeErr != nil {
		closeErr = fmt.Errorf("failed to close the session with the host: %w", closeErr)
	}
	return closeErr, err
}

// listen tells the listener of the session's events, in order, until there are no more. Events
// that were sent before the answer of Pending came are newer than the answer and are told first.
// After the end of ctx it drops events until closed is closed, so that Close does not wait for a
// reader.
func (s *session) listen(ctx context.Context, events <-chan source.Event, closed <-chan struct{}) {
	var waiting answer
	for heard := false; ; {
		var event source.Event
		var open bool
		select {
		case event, open = <-events:
		default:
			if waiting != nil {
				waiting(heard || ctx.Err() != nil)
				waiting = nil
			}
			select {
			case event, open = <-events:
			case waiting = <-s.answers:
				continue
			case <-closed:
				return
			}
		}
		if !open {
			return
		}
		if ctx.Err() == nil {
			heard = true
			s.contact.reached.Store(true)
			s.Listener.HostEvent(event, time.Now())
		}
	}
}

// hold reads the pending shutdown and then holds the lock until the session is lost, or until a
// call has been given up. While no shutdown is announced it asks again and again how long the host
// waits.
func (s *session) hold(ctx context.Context) error {
	if err := s.readPending(ctx); err != nil {
		return err
	}
	var lastErr error // of the last task; one that was nothing to do changes nothing
	var logged string // the failure that was logged last; "": the last task went well
	for ctx.Err() == nil {
		done, err := s.work(ctx)
		if done != taskRest || err != nil {
			lastErr = err
		}
		s.contact.set(lastErr, s.delay.unmet)
		if errors.Is(err, errHangs) {
			return err
		}
		logged = logNews(ctx, lastErr, logged, done)
		s.waitForTask(ctx, done, err)
	}
	return context.Cause(ctx)
}

// logNews logs why a task has failed, once until the reason changes, and returns what the next call
// needs to know. During a shutdown a host refuses locks, which is no news.
func logNews(ctx context.Context, err error, logged string, done task) string {
	if err == nil {
		return ""
	}
	text := fmt.Sprint(err)
	if text != logged && done != taskAdopt && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Failed to inhibit the shutdown or to read its limit, will try again")
	}
	return text
}

// readPending tells the listener which shutdown is pending, if any, and returns when it has acted on
// that. A host that cannot know whether a shutdown is pending returns an error that wraps
// errors.ErrUnsupported, which does not fail the session.
func (s *session) readPending(ctx context.Context) error {
	pending, err := ask(ctx, s.contact, "Pending", hangTime, s.conn.Pending)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("failed to read whether a shutdown is under way: %w", err)
	}
	if err != nil || pending != nil && pending.Cancelled {
		pending = nil
	}
	s.contact.reached.Store(true)
	s.lock.beginSession()
	received, told := time.Now(), make(chan struct{})
	select {
	case s.answers <- func(old bool) {
		if !old {
			s.Listener.HostPending(pending, err == nil, received)
		}
		close(told)
	}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-told:
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
	if next == taskTake || next == taskKeep {
		delayErr = s.requestDelay(ctx)
		next, epoch = s.lock.next() // a shutdown may have begun meanwhile
	}
	switch next {
	case taskTake:
		lockErr = s.inhibit(ctx, epoch, false)
	case taskAdopt:
		lockErr = s.inhibit(ctx, epoch, true)
		s.lock.do(s.lock.endAdoption)
	default:
	}
	return next, errors.Join(delayErr, lockErr)
}

// requestDelay asks the host to wait long enough, which reads its limit. A capped delay is no failure:
// it is kept in delay.unmet if pods lose time. A change is logged.
func (s *session) requestDelay(ctx context.Context) error {
	granted, err := ask(ctx, s.contact, "RequestDelay", delayTimeout, func(ctx context.Context) (time.Duration, error) {
		return s.conn.RequestDelay(ctx, s.Delay)
	})
	var capped *source.DelayCappedError
	if err != nil && !errors.As(err, &capped) {
		return fmt.Errorf("failed to request the shutdown delay: %w", err)
	}
	if err == nil && granted < s.Delay { // a source that gives no reason
		capped = &source.DelayCappedError{Requested: s.Delay, Granted: granted}
		err = capped
	}
	now := limit{granted: granted}
	if capped != nil {
		now.setBy = setBy(capped)
	}
	before := s.delay.limit.Swap(&now)
	s.Metrics.Delay(s.Delay, granted)
	logger := klog.FromContext(ctx).WithValues("granted", granted, "requested", s.Delay)
	changed := before == nil || before.granted != granted
	if before != nil {
		logger = logger.WithValues("before", before.granted)
	}
	var unmet error
	if capped != nil && s.Shortens(granted) {
		unmet = err
	}
	previous := s.delay.unmet
	s.delay.unmet = unmet
	switch {
	case unmet != nil && (previous == nil || fmt.Sprint(previous) != fmt.Sprint(unmet)): // fmt survives an Error method that panics
		logger.Error(unmet, "The host waits for less than it was asked to, and some pods get less time")
		s.Listener.HostCapped(unmet)
	case changed && before != nil:
		logger.Info("The time that the host waits has changed", "setBy", now.setBy)
	case changed && capped != nil:
		logger.V(1).Info("The host waits for less than it was asked to, the pods' time fits all the same", "err", err)
	}
	return nil
}

// setBy names what caps the delay.
func setBy(capped *source.DelayCappedError) string {
	switch {
	case capped.Setting != "" && capped.SetBy != "":
		return capped.Setting + " in " + capped.SetBy
	default:
		return cmp.Or(capped.Setting, capped.SetBy)
	}
}

// inhibit takes the lock. adopting says that a shutdown is under way.
func (s *session) inhibit(ctx context.Context, epoch uint64, adopting bool) error {
	given, err := ask(ctx, s.contact, "Inhibit", hangTime, s.conn.Inhibit)
	if err == nil && given == nil {
		err = errors.New("the host has given no lock")
	}
	if err != nil {
		return fmt.Errorf("failed to inhibit the shutdown: %w", err)
	}
	if err := s.lock.take(ctx, given, epoch, adopting); err != nil { // of a lock that is not needed any more
		klog.FromContext(ctx).Error(err, "Failed to close the previous lock")
	}
	return nil
}

// waitForTask waits for the next task, or until the host's limit is to be read again.
func (s *session) waitForTask(ctx context.Context, done task, err error) {
	var again <-chan time.Time // nil: never
	switch wanted := done == taskTake || done == taskKeep; {
	case wanted && err != nil:
		again = time.After(reconnectPause)
	case wanted:
		again = time.After(s.delay.nextPause())
	}
	select {
	case <-again:
	case <-s.lock.wake:
	case <-ctx.Done():
	}
}
