package shutdown

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

const (
	// answerTimeout is how long Ready waits for each answer of the host.
	answerTimeout = 2 * time.Second
	// delayTimeout is how long Ready waits for the answer to RequestDelay: logind needs up to
	// three seconds if it has to be reloaded.
	delayTimeout = 5 * time.Second
	// reconnectPause is the pause before the next session, as the kubelet's dbusReconnectPeriod.
	// The host is this machine, so it does not grow.
	reconnectPause = time.Second
)

// errSilent is the status of a host that has not answered in time.
var errSilent = errors.New("the host does not answer")

// errNoLock is the status of a host whose Inhibit returned neither a lock nor an error.
var errNoLock = errors.New("failed to inhibit the shutdown: the host has given no lock")

// errSessionLost ends the calls of a session that has closed its events.
var errSessionLost = errors.New("the host's session was lost")

// keeper owns the session with the host and keeps the lock held. In each session it subscribes
// first, then reads the pending shutdown, then requests the delay, then takes the lock: in this
// order no event is missed. A session that fails or is lost is replaced after a second, for ever.
type keeper struct {
	source         Source
	requestedDelay time.Duration                    // the delay that the host is asked for
	shortensBucket func(granted time.Duration) bool // some bucket gets less than its configured time
	lock           *hostLock
	calls          *call.Group
	post           func(message) bool
	attempted      func()        // is called when the first attempt has succeeded or failed
	wake           chan struct{} // of size 1; signalled when a lock is wanted again
	session        uint64        // the number of the session, from 1
	capped         error         // wraps a *DelayCappedError; nil: the host waits as long as asked
	silentTimer    *time.Timer   // ends the wait for the first attempt if the host does not answer
}

// run keeps a session until ctx ends. Its error is that of closing the last session.
func (k *keeper) run(ctx context.Context) error {
	k.silentTimer = time.AfterFunc(answerTimeout, func() {
		k.lock.setSilent()
		k.attempted()
	})
	defer k.silentTimer.Stop()
	var logged string // the failure that was logged last; "": none goes on
	for {
		start := time.Now()
		session := call.Start(ctx, k.calls, "Options.Source", k.runSession)
		select {
		case <-session.Done():
		case <-ctx.Done():
		}
		closeErr, err := session.Await(context.WithoutCancel(ctx), time.Now().Add(hangTime))
		if ctx.Err() != nil {
			if !errors.As(err, new(*call.PanicError)) {
				err = nil // a lost session is not needed any more; Run names calls that hang
			}
			return errors.Join(err, closeErr)
		}
		err = errors.Join(err, closeErr)
		k.lock.setErr(err)
		k.post(func(l *loop) { l.clearNodeState() })
		k.attempted()
		if time.Since(start) > reconnectPause {
			logged = "" // the session was good for a while, or slow to fail
		}
		if text := fmt.Sprint(err); text != logged {
			klog.FromContext(ctx).Error(err, "Not connected to the host, will try again every second", "period", reconnectPause)
			logged = text
		}
		if !wait(ctx, reconnectPause, nil) {
			return nil
		}
	}
}

// allowAnswer gives the host time for its next answer, unless it was found silent before.
func (k *keeper) allowAnswer(next time.Duration) {
	if k.silentTimer.Stop() {
		k.silentTimer.Reset(next)
	}
}

// runSession runs one session from Connect to its loss. It returns the error of Close and the
// reason of the loss.
func (k *keeper) runSession(parent context.Context) (closeErr, err error) {
	session, err := k.source.Connect(parent)
	if err != nil {
		return nil, fmt.Errorf("failed to connect to the host: %w", err)
	}
	k.allowAnswer(answerTimeout)
	k.session++
	defer k.lock.endAdoption() // also if the session is lost, or a call of it panics
	ctx, lost := context.WithCancelCause(parent)
	defer lost(nil)
	kept := false
	defer func() {
		if kept {
			return
		}
		if err := session.Close(); err != nil { // a call of the session has panicked
			klog.FromContext(parent).Error(err, "Failed to close the session with the host")
		}
	}()
	var wg sync.WaitGroup
	events, number := session.Events(), k.session
	wg.Go(func() {
		defer lost(errSessionLost)
		k.forward(events, number)
	})
	err = k.holdLock(ctx, session)
	kept = true
	closeErr = session.Close()
	wg.Wait() // Close has closed the events
	return closeErr, err
}

// forward posts the events of a session to the loop, in order.
func (k *keeper) forward(events <-chan Event, session uint64) {
	for event := range events {
		received := time.Now()
		k.post(func(l *loop) { l.hostEvent(event, session, received) })
	}
}

// holdLock reads the pending shutdown and then holds the lock until the session is lost. A host
// that waits for less than the pods' time is asked again from time to time.
func (k *keeper) holdLock(ctx context.Context, session Session) error {
	if err := k.readPending(ctx, session); err != nil {
		return err
	}
	err := k.adopt(ctx, session)
	k.lock.endAdoption()
	var pause backoff
	var lockEpoch uint64 // the epoch of the lock that this session took; 0: none
	for ctx.Err() == nil {
		epoch, wanted := k.lock.wanted()
		switch {
		case !wanted:
		case lockEpoch != epoch:
			if err = k.takeLock(ctx, session); err == nil {
				lockEpoch = epoch
			}
		case k.capped != nil:
			err = k.requestDelay(ctx, session)
		}
		k.lock.setErr(errors.Join(err, k.capped))
		k.attempted()
		switch {
		case wanted && err != nil:
			wait(ctx, reconnectPause, k.wake)
		case wanted && k.capped != nil:
			pause.wait(ctx, k.wake)
		default:
			pause.reset()
			k.awaitWake(ctx)
		}
	}
	return context.Cause(ctx)
}

// awaitWake waits until a lock is wanted again or the session is lost.
func (k *keeper) awaitWake(ctx context.Context) {
	select {
	case <-k.wake:
	case <-ctx.Done():
	}
}

// wakeUp tells the keeper that a lock is wanted again. It never blocks.
func (k *keeper) wakeUp() {
	select {
	case k.wake <- struct{}{}:
	default: // a signal is waiting already
	}
}

// readPending tells the loop which shutdown is pending, if any. The loop may defer a shutdown
// until it has the state folder; readPending waits for that, because the host refuses requests
// during a shutdown. A host that cannot know whether a shutdown is pending returns an error that
// wraps errors.ErrUnsupported, which does not fail the session.
func (k *keeper) readPending(ctx context.Context, session Session) error {
	pending, err := session.Pending(ctx)
	received := time.Now()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("failed to read whether a shutdown is under way: %w", err)
	}
	k.allowAnswer(folderLockTime + answerTimeout)
	number, known, heard := k.session, err == nil, make(chan struct{})
	handled := func() { close(heard) }
	k.lock.beginAdoption() // a drain without pods may end before adopt has been called
	if !k.post(func(l *loop) {
		l.pendingFound(pending, known, number, received)
		if pending == nil || !l.deferUntilStateRead(nil, handled) {
			handled()
		}
	}) {
		return context.Cause(ctx)
	}
	select {
	case <-heard:
		k.allowAnswer(delayTimeout)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// adopt takes the lock of a previous agent during a shutdown. A host that has kept none refuses.
func (k *keeper) adopt(ctx context.Context, session Session) error {
	if !k.lock.adoptable() {
		return nil
	}
	return k.inhibit(ctx, session)
}

// takeLock requests the delay and takes the lock, even if the granted delay is less.
func (k *keeper) takeLock(ctx context.Context, session Session) error {
	if err := k.requestDelay(ctx, session); err != nil {
		return err
	}
	return k.inhibit(ctx, session)
}

// requestDelay requests the delay. A capped delay is no failure. It is shown in the status only
// if a bucket loses time.
func (k *keeper) requestDelay(ctx context.Context, session Session) error {
	granted, err := session.RequestDelay(ctx, k.requestedDelay)
	if capped := errors.As(err, new(*DelayCappedError)); err != nil && !capped {
		return fmt.Errorf("failed to request the shutdown delay: %w", err)
	}
	k.allowAnswer(answerTimeout)
	k.lock.setDelay(k.requestedDelay, granted)
	if err != nil && !k.shortensBucket(granted) {
		klog.FromContext(ctx).V(1).Info("The host waits for less than it was asked to, the pods' time fits all the same", "granted", granted, "requested", k.requestedDelay, "err", err)
		err = nil
	}
	k.setCapped(err)
	return nil
}

// setCapped stores the error of a capped delay for the status; nil removes it. A new one is also
// recorded as an event on the node.
func (k *keeper) setCapped(capped error) {
	news := capped != nil && (k.capped == nil || k.capped.Error() != capped.Error())
	if news {
		message := capped.Error() // here, because the loop calls no code of the embedder's
		k.post(func(l *loop) { l.announcer.recordEvent(v1.EventTypeWarning, message) })
	}
	k.capped = capped
}

// inhibit takes the lock and gives it to the hostLock. A failure after that, of closing the old
// lock, does not make the keeper take another one.
func (k *keeper) inhibit(ctx context.Context, session Session) error {
	lock, err := session.Inhibit(ctx)
	if err != nil {
		return fmt.Errorf("failed to inhibit the shutdown: %w", err)
	}
	if lock == nil {
		return errNoLock
	}
	return k.lock.take(ctx, lock)
}
