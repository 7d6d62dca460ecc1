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
	// answerTimeout is how long an agent's start waits for each answer of a host.
	answerTimeout = 2 * time.Second
	// delayTimeout is the same for the question to be delayed: a logind that has to be
	// reloaded for it needs up to three seconds.
	delayTimeout = 5 * time.Second
	// reconnectPause is how long after a failure the host is tried again, as the
	// kubelet's dbusReconnectPeriod: the host is this machine.
	reconnectPause = time.Second
)

// errSilent is the status of a host that has not answered in that time.
var errSilent = errors.New("the host does not answer")

// errNoLock is a host that neither refuses the lock nor gives one.
var errNoLock = errors.New("failed to inhibit the shutdown: the host has given no lock")

// errSessionLost ends what is under way in a session that has closed its events.
var errSessionLost = errors.New("the host's session was lost")

// keeper owns the session with the host and sees to it that the one lock is
// held: connected and subscribed first, then asked for what is pending, then for
// the delay, then for the lock, so that no event falls into a gap. It goes on for
// ever, the first attempt included: what fails is tried again every second.
type keeper struct {
	source Source
	wish   time.Duration                    // what the host is asked for
	short  func(granted time.Duration) bool // a bucket has to be fitted to less than its own
	lock   *inhibitor
	calls  *call.Group
	post   func(message) bool
	settle func()        // the first attempt is settled
	wake   chan struct{} // of size 1: the lock is wanted again
	number uint64        // of the session, from 1
	capped error         // holds a *DelayCappedError; nil: the host waits as it was asked to
	silent *time.Timer   // settles the first attempt if the host does not answer
}

// run keeps a session until ctx ends; its error is what failed at that end.
func (k *keeper) run(ctx context.Context) error {
	k.silent = time.AfterFunc(answerTimeout, func() {
		k.lock.silent()
		k.settle()
	})
	defer k.silent.Stop()
	var said string // the failure that was logged last, and goes on
	for {
		began := time.Now()
		session := call.Start(ctx, k.calls, "Options.Source", k.serve)
		select {
		case <-session.Done():
		case <-ctx.Done():
		}
		unclosed, err := session.Await(context.WithoutCancel(ctx), time.Now().Add(hangTime))
		if ctx.Err() != nil {
			if !errors.As(err, new(*call.PanicError)) {
				err = nil // it was lost, and need not be had again; Run names what hangs
			}
			return errors.Join(err, unclosed)
		}
		err = errors.Join(err, unclosed)
		k.lock.note(err)
		k.post(func(l *loop) { l.undo() })
		k.settle()
		if time.Since(began) > reconnectPause {
			said = "" // the host was there meanwhile, or has taken its time to fail
		}
		if text := fmt.Sprint(err); text != said {
			klog.FromContext(ctx).Error(err, "Lost the host, will try again every second", "period", reconnectPause)
			said = text
		}
		if !wait(ctx, reconnectPause, nil) {
			return nil
		}
	}
}

// answered gives the host time for its next answer, unless it was found silent already.
func (k *keeper) answered(next time.Duration) {
	if k.silent.Stop() {
		k.silent.Reset(next)
	}
}

// serve is one session, from the connection to its loss, and gives what its Close has failed
// with and why it was lost.
func (k *keeper) serve(parent context.Context) (unclosed, err error) {
	session, err := k.source.Connect(parent)
	if err != nil {
		return nil, fmt.Errorf("failed to connect to the host: %w", err)
	}
	k.answered(answerTimeout)
	k.number++
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
	events, number := session.Events(), k.number
	wg.Go(func() {
		defer lost(errSessionLost)
		k.forward(events, number)
	})
	err = k.keep(ctx, session)
	kept = true
	unclosed = session.Close()
	wg.Wait() // Close has closed the events
	return unclosed, err
}

// forward hands each event of a session to the loop, in order.
func (k *keeper) forward(events <-chan Event, session uint64) {
	for event := range events {
		received := time.Now()
		k.post(func(l *loop) { l.hear(event, session, received) })
	}
}

// keep reads what is pending and holds the lock until the session is lost. A
// host that waits for less than the pods' time is asked again from time to time.
func (k *keeper) keep(ctx context.Context, session Session) error {
	if err := k.readPending(ctx, session); err != nil {
		return err
	}
	err := k.adopt(ctx, session)
	var pause backoff
	var has uint64 // the epoch of the lock of this session; 0: none
	for ctx.Err() == nil {
		epoch, wanted := k.lock.wanted()
		switch {
		case !wanted:
		case has != epoch:
			if err = k.take(ctx, session); err == nil {
				has = epoch
			}
		case k.capped != nil:
			err = k.ask(ctx, session)
		}
		k.lock.note(errors.Join(err, k.capped))
		k.settle()
		switch {
		case wanted && err != nil:
			wait(ctx, reconnectPause, k.wake)
		case wanted && k.capped != nil:
			pause.wait(ctx, k.wake)
		default:
			pause.reset()
			k.await(ctx)
		}
	}
	return context.Cause(ctx)
}

// await waits until the lock is wanted again or the session is lost.
func (k *keeper) await(ctx context.Context) {
	select {
	case <-k.wake:
	case <-ctx.Done():
	}
}

// rouse tells the keeper that the lock is wanted again. It never blocks.
func (k *keeper) rouse() {
	select {
	case k.wake <- struct{}{}:
	default: // it has been told already
	}
}

// readPending tells the loop of the shutdown that is under way, or that none is. The loop may
// put off a shutdown until it has the state folder; that is waited for.
// A host that cannot tell says so with an error that wraps errors.ErrUnsupported.
func (k *keeper) readPending(ctx context.Context, session Session) error {
	pending, err := session.Pending(ctx)
	received := time.Now()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("failed to read whether a shutdown is under way: %w", err)
	}
	k.answered(lockTime + answerTimeout)
	number, known, heard := k.number, err == nil, make(chan struct{})
	hear := func() { close(heard) }
	if !k.post(func(l *loop) {
		l.found(pending, known, number, received)
		if pending == nil || !l.putOff(nil, hear) { // during a shutdown the host is asked for nothing
			hear()
		}
	}) {
		return context.Cause(ctx)
	}
	select {
	case <-heard:
		k.answered(delayTimeout)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// adopt takes the lock of a former agent, where the host kept one, in the middle
// of a shutdown. A host that did not refuses, and will not wait.
func (k *keeper) adopt(ctx context.Context, session Session) error {
	if !k.lock.adoptable() {
		return nil
	}
	return k.inhibit(ctx, session)
}

// take asks for the delay and takes the lock. A host that waits for less is held
// all the same.
func (k *keeper) take(ctx context.Context, session Session) error {
	if err := k.ask(ctx, session); err != nil {
		return err
	}
	return k.inhibit(ctx, session)
}

// ask asks for the delay. That it is capped is no failure, and no trouble either as
// long as every bucket has its own time within it.
func (k *keeper) ask(ctx context.Context, session Session) error {
	granted, err := session.RequestDelay(ctx, k.wish)
	if capped := errors.As(err, new(*DelayCappedError)); err != nil && !capped {
		return fmt.Errorf("failed to request the shutdown delay: %w", err)
	}
	k.answered(answerTimeout)
	k.lock.delay(k.wish, granted)
	if err != nil && !k.short(granted) {
		klog.FromContext(ctx).V(1).Info("The host waits for less than it was asked to, the pods' time fits all the same", "granted", granted, "requested", k.wish, "err", err)
		err = nil
	}
	k.cap(err)
	return nil
}

// cap keeps the error of a capped delay for the status, with the reasons that the
// host joined to it, and says it on the node when it is news; nil: it is capped no
// more.
func (k *keeper) cap(capped error) {
	news := capped != nil && (k.capped == nil || k.capped.Error() != capped.Error())
	if news {
		message := capped.Error() // here, because it is the host's code, which the loop does not call
		k.post(func(l *loop) { l.announcer.record(v1.EventTypeWarning, message) })
	}
	k.capped = capped
}

// inhibit takes the lock. It is the host's by now, so that what fails later is no
// reason to take another one.
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
