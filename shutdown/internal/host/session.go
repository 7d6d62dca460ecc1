package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// errSessionLost is the error of a session whose channel of events the source has closed.
var errSessionLost = errors.New("the host's session was lost")

// session is one session with the host. It subscribes to events, reads the pending shutdown, requests
// the delay, and takes the lock, in this order, so that it misses no event. One goroutine receives events (listen);
// another makes the other calls (holdLock).
type session struct {
	*Host

	conn    source.Session
	answers chan pendingAnswer // from holdLock to listen
}

// pendingAnswer passes the result of Pending to the listener, unless the result is outdated, because an event came first.
type pendingAnswer func(isOutdated bool)

// run runs the session until it is lost, and then closes it. A goroutine passes the events on (listen) while run keeps the lock
// (holdLock). When one of the two ends, the other ends too, but listen drops events until the session is closed. err says why
// the session was lost, closeErr why Close failed.
func (s *session) run(parent context.Context) (closeErr, err error) {
	ctx, lose := context.WithCancelCause(parent)
	defer lose(nil)
	var listening sync.WaitGroup
	closed := make(chan struct{}) // closed when the session is
	events, err := s.events(ctx)
	if err == nil {
		listening.Add(1)
		go func() {
			defer listening.Done()
			s.listen(ctx, events, closed)
			if parent.Err() == nil {
				s.contact.setLost(errSessionLost) // now, because holdLock may still be in a call
			}
			lose(errSessionLost)
		}()
		// Guard, because holdLock calls methods of the source's errors, which may panic.
		call.Guard(ctx, "an error of Options.Source", func() error { return s.holdLock(ctx) }, func(result error) { err = result })
	}
	lose(err)
	if parent.Err() == nil {
		s.contact.setLost(err) // before close, which may be slow
	}
	closeErr = s.close(context.WithoutCancel(parent))
	close(closed)
	listening.Wait()
	return closeErr, err
}

// events returns the session's channel of events.
func (s *session) events(ctx context.Context) (<-chan source.Event, error) {
	events, err := callSource(ctx, s.contact, "Events", answerTimeout, func(context.Context) (<-chan source.Event, error) {
		return s.conn.Events(), nil
	})
	if err == nil && events == nil {
		err = errors.New("the session has no channel of events")
	}
	return events, err
}

// close closes the session with the host. It abandons a Close that hangs.
func (s *session) close(ctx context.Context) error {
	_, err := callSource(ctx, s.contact, "Close", closeTimeout, func(context.Context) (struct{}, error) {
		return struct{}{}, s.conn.Close()
	})
	if err != nil {
		return fmt.Errorf("failed to close the session with the host: %w", err)
	}
	return nil
}

// listen passes events to the listener, in order, until their channel is closed, and between two events the result of Pending. If
// the channel has events when the result comes, listen passes these first: they are newer, so the result is outdated.
//
// After the end of ctx it drops events until closed is closed. Otherwise the source's Close could block on an
// unread event.
func (s *session) listen(ctx context.Context, events <-chan source.Event, closed <-chan struct{}) {
	var answer pendingAnswer // the result of Pending, if it has not been passed on yet; otherwise nil
	hasPassedEvent := false
	for {
		var event source.Event
		var isOpen bool
		select {
		case event, isOpen = <-events:
		default: // the channel is empty
			if answer != nil {
				isOutdated := hasPassedEvent || ctx.Err() != nil
				answer(isOutdated)
				answer = nil
			}
			select { // wait for whatever comes first
			case event, isOpen = <-events:
			case answer = <-s.answers:
				continue
			case <-closed:
				return
			}
		}
		if !isOpen {
			return
		}
		if ctx.Err() == nil {
			hasPassedEvent = true
			s.contact.reached.Store(true)
			s.Listener.HostEvent(event)
		}
	}
}

// holdLock tells the listener whether a shutdown is pending, and then takes and keeps the lock. It returns
// why it stopped: the session is lost, or one of its calls hangs.
func (s *session) holdLock(ctx context.Context) error {
	if err := s.readPending(ctx); err != nil {
		return err
	}
	var taskErr error    // of the last task other than taskNone
	var loggedErr string // the text of the last logged error; "" after a success
	for ctx.Err() == nil {
		done, err := s.doTask(ctx)
		if done != taskNone || err != nil {
			taskErr = err
		}
		s.contact.setTaskResult(taskErr, s.delay.tooShortErr)
		if errors.Is(err, errHangs) {
			return err
		}
		loggedErr = s.logOnce(ctx, taskErr, loggedErr, done)
		s.waitForTask(ctx, done, err)
	}
	return context.Cause(ctx)
}

// logOnce logs the error of a task (done), unless its text is loggedErr, the previous result of logOnce. It returns the text
// of the error, or "" if err is nil. A failed taskTryOnce is not logged, because hosts refuse locks during a shutdown.
func (s *session) logOnce(ctx context.Context, err error, loggedErr string, done task) string {
	if err == nil {
		return ""
	}
	text := fmt.Sprint(err)
	if text != loggedErr && done != taskTryOnce && ctx.Err() == nil {
		s.logLines.Add(func() {
			klog.FromContext(ctx).Error(err, "Failed to inhibit the shutdown or to read its limit, will retry")
		})
	}
	return text
}

// readPending passes the pending shutdown to the listener, and returns when the listener has handled it. An error of
// Pending that wraps errors.ErrUnsupported means that the host cannot answer. It does not end the session.
func (s *session) readPending(ctx context.Context) error {
	pending, err := callSource(ctx, s.contact, "Pending", callTimeout, s.conn.Pending)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("failed to read the pending shutdown: %w", err)
	}
	isPending := err == nil && pending != nil && !pending.Cancelled
	if !isPending {
		pending = nil
	}
	s.contact.reached.Store(true)
	s.lock.beginSession()
	received, handled := time.Now(), make(chan struct{})
	passOn := func(isOutdated bool) {
		if !isOutdated {
			isKnown := err == nil
			s.Listener.HostPending(pending, isKnown, received)
		}
		close(handled)
	}
	select {
	case s.answers <- passOn: // listen calls it, between two events
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-handled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// doTask does the next task about the lock, if there is one, and returns it. If the request for the delay fails, the lock is
// taken anyway: a delay shorter than requested is better than none.
func (s *session) doTask(ctx context.Context) (done task, err error) {
	next, epoch := s.lock.nextTask()
	var delayErr, lockErr error
	if next == taskTake || next == taskRequestDelay {
		delayErr = s.requestDelay(ctx)
		next, epoch = s.lock.nextTask() // a shutdown may have begun during the request
	}
	switch next {
	case taskTake:
		const inShutdown = false
		lockErr = s.inhibit(ctx, epoch, inShutdown)
	case taskTryOnce:
		const inShutdown = true
		lockErr = s.inhibit(ctx, epoch, inShutdown)
		s.lock.withMutex(s.lock.endAttempt)
	default:
	}
	return next, errors.Join(delayErr, lockErr)
}

// requestDelay asks the host to delay a shutdown by s.Delay, and stores what the host grants in delay.limit. A grant that
// is shorter than requested is not an error of the request.
func (s *session) requestDelay(ctx context.Context) error {
	granted, err := callSource(ctx, s.contact, "RequestDelay", delayTimeout, func(ctx context.Context) (time.Duration, error) {
		return s.conn.RequestDelay(ctx, s.Delay)
	})
	var capped *source.DelayCappedError
	if err != nil && !errors.As(err, &capped) {
		return fmt.Errorf("failed to request the shutdown delay: %w", err)
	}
	if err == nil && granted < s.Delay { // the source does not say what limits the delay
		capped = &source.DelayCappedError{Requested: s.Delay, Granted: granted}
		err = capped
	}
	newest := limit{granted: granted}
	if capped != nil {
		newest.setBy = setBy(capped)
	}
	previous := s.delay.limit.Swap(&newest)
	s.Metrics.Delay(s.Delay, granted)
	s.reportGrant(ctx, newest, previous, err)
	return nil
}

// reportGrant reports the newest grant. previous is the grant before it; nil: there was none. capErr says that the newest grant is
// shorter than requested; nil: it is not. If pods get less than their configured time, reportGrant sets delay.tooShortErr, and
// tells the listener, unless the last grant was too short with the same text. Other changes of the grant are logged here.
func (s *session) reportGrant(ctx context.Context, newest limit, previous *limit, capErr error) {
	logger := klog.FromContext(ctx).WithValues("granted", newest.granted, "requested", s.Delay)
	isFirst := previous == nil
	hasChanged := isFirst || previous.granted != newest.granted
	if !isFirst {
		logger = logger.WithValues("before", previous.granted)
	}
	var tooShortErr error
	if capErr != nil && s.ShortensPods(newest.granted) {
		tooShortErr = capErr
	}
	reportedErr := s.delay.tooShortErr
	s.delay.tooShortErr = tooShortErr
	isNewText := reportedErr == nil || fmt.Sprint(reportedErr) != fmt.Sprint(tooShortErr) // Sprint recovers a panic of Error
	switch {
	case tooShortErr != nil && isNewText:
		s.Listener.HostCapped(tooShortErr)
	case hasChanged && !isFirst:
		s.logLines.Add(func() { logger.Info("The host's delay limit has changed", "setBy", newest.setBy) })
	case hasChanged && capErr != nil:
		s.logLines.Add(func() {
			logger.V(1).Info("The host waits for less than requested, but long enough for all pods", "err", capErr)
		})
	}
}

// setBy names the setting that caps the delay, and the file that sets it, as far as they are known; "": neither is.
func setBy(capped *source.DelayCappedError) string {
	switch {
	case capped.Setting != "" && capped.SetBy != "":
		return capped.Setting + " in " + capped.SetBy
	default:
		return cmp.Or(capped.Setting, capped.SetBy)
	}
}

// inhibit requests a lock from the host and passes it to s.lock, which closes the previous one. epoch is the current epoch, and
// inShutdown says that a shutdown is in progress. A failure to close the previous lock is only logged.
func (s *session) inhibit(ctx context.Context, epoch uint64, inShutdown bool) error {
	given, err := callSource(ctx, s.contact, "Inhibit", callTimeout, s.conn.Inhibit)
	if err == nil && given == nil {
		err = errors.New("the host returned no lock")
	}
	if err != nil {
		return fmt.Errorf("failed to inhibit the shutdown: %w", err)
	}
	if err := s.lock.take(ctx, given, epoch, inShutdown); err != nil {
		s.logLines.Add(func() { klog.FromContext(ctx).Error(err, "Failed to close the previous lock") })
	}
	return nil
}

// waitForTask waits until the lock has a new task. If the last task (done) has requested the delay, it waits at most until the
// request must be repeated. That is soon if the task failed with err, and otherwise later, to read the host's limit again.
func (s *session) waitForTask(ctx context.Context, done task, err error) {
	hasRequestedDelay := done == taskTake || done == taskRequestDelay
	var again <-chan time.Time // nil: never
	switch {
	case hasRequestedDelay && err != nil:
		again = time.After(reconnectPause)
	case hasRequestedDelay:
		again = time.After(s.delay.nextPause())
	}
	select {
	case <-again:
	case <-s.lock.wake:
	case <-ctx.Done():
	}
}

const (
	// readInterval is how often the host's limit is read while no shutdown is announced: logind does not say
	// when its limit changes.
	readInterval = 10 * time.Second
	// minRetryPause is the pause before the next request after an insufficient grant. It doubles up to
	// readInterval.
	minRetryPause = time.Second
)

// limit is the host's answer to a request for the delay.
type limit struct {
	granted time.Duration
	setBy   string // what caps the delay, such as "InhibitDelayMaxSec in /etc/a.conf"; "": nothing, or it is not known
}

// delay is the state of the requested delay. Only the goroutine of Run uses it, except for limit.
type delay struct {
	limit       atomic.Pointer[limit] // the newest answer; nil: none yet
	tooShortErr error                 // why pods get less time, by the newest answer; a *source.DelayCappedError, or nil
	lastPause   time.Duration         // the last pause while tooShortErr is set
}

// nextPause returns the pause before the next request for the delay: readInterval. After a grant that is too small it is
// minRetryPause at first, and doubles with each call up to readInterval.
func (d *delay) nextPause() time.Duration {
	if d.tooShortErr == nil {
		d.lastPause = 0
		return readInterval
	}
	d.lastPause = min(max(2*d.lastPause, minRetryPause), readInterval)
	return d.lastPause
}
