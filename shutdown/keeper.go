package shutdown

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// containerFloor is the grace that every container gets beyond its pod's, 2 s;
// the host is asked to wait for it beside the schedule.
const containerFloor = 2 * time.Second

// errSessionLost ends what is under way in a session that has closed its events.
var errSessionLost = errors.New("the host's session was lost")

// keeper owns the session with the host and sees to it that the one lock is
// held: connected and subscribed first, then asked for what is pending, then for
// the delay, then for the lock, so that no event falls into a gap. It goes on for
// ever, the first attempt included.
type keeper struct {
	source Source
	wish   time.Duration // what the host is asked for
	lock   *inhibitor
	post   func(message) bool
	settle func()        // the first attempt is settled
	wake   chan struct{} // of size 1: the lock is wanted again
	number uint64        // of the session, from 1
}

// run keeps a session until ctx ends; its error is what failed at that end.
func (k *keeper) run(ctx context.Context) error {
	var pause backoff
	for {
		began := time.Now()
		err := k.serve(ctx)
		if ctx.Err() != nil {
			return err
		}
		if time.Since(began) > backoffMost {
			pause.reset() // it was a good session
		}
		k.lock.note(err)
		k.settle()
		klog.FromContext(ctx).Error(err, "Lost the host, will try again")
		pause.wait(ctx, nil)
	}
}

// serve is one session, from the connection to its loss. The end of parent is no
// failure; the session's Close may be.
func (k *keeper) serve(parent context.Context) error {
	session, err := k.source.Connect(parent)
	if err != nil {
		return unlessEnded(parent, fmt.Errorf("failed to connect to the host: %w", err))
	}
	k.number++
	ctx, lost := context.WithCancelCause(parent)
	defer lost(nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer lost(errSessionLost)
		k.forward(session.Events(), k.number)
	})
	err = unlessEnded(parent, k.keep(ctx, session))
	err = errors.Join(err, session.Close())
	wg.Wait() // Close has closed the events
	return err
}

// unlessEnded is err, or nil if ctx has ended: then err says no more than that.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// forward hands each event of a session to the loop, in order.
func (k *keeper) forward(events <-chan Event, session uint64) {
	for event := range events {
		received := time.Now()
		k.post(func(l *loop) { l.hear(event, session, received) })
	}
}

// keep reads what is pending and holds the lock until the session is lost.
func (k *keeper) keep(ctx context.Context, session Session) error {
	if err := k.readPending(ctx, session); err != nil {
		return err
	}
	var pause backoff
	taken, once := uint64(0), false // the epoch of the lock of this session
	for ctx.Err() == nil {
		epoch, wanted := k.lock.wanted()
		if !wanted || once && epoch == taken {
			k.settle()
			k.await(ctx)
			continue
		}
		if err := k.take(ctx, session); err != nil {
			k.lock.note(err)
			k.settle()
			pause.wait(ctx, k.wake)
			continue
		}
		pause.reset()
		taken, once = epoch, true
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

// readPending tells the loop of the shutdown that is under way, or that none is.
// A host that cannot tell says so with an error that wraps errors.ErrUnsupported.
func (k *keeper) readPending(ctx context.Context, session Session) error {
	pending, err := session.Pending(ctx)
	received := time.Now()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("failed to read whether a shutdown is under way: %w", err)
	}
	number, known, heard := k.number, err == nil, make(chan struct{})
	if !k.post(func(l *loop) { defer close(heard); l.found(pending, known, number, received) }) {
		return context.Cause(ctx)
	}
	<-heard
	return nil
}

// take asks for the delay and takes the lock. A host that waits for less is held
// all the same, and the error stays in the status.
func (k *keeper) take(ctx context.Context, session Session) error {
	granted, err := session.RequestDelay(ctx, k.wish)
	capped, isCapped := errors.AsType[*DelayCappedError](err)
	if err != nil && !isCapped {
		return fmt.Errorf("failed to request the shutdown delay: %w", err)
	}
	k.lock.delay(k.wish, granted)
	lock, err := session.Inhibit(ctx)
	if err != nil {
		return fmt.Errorf("failed to inhibit the shutdown: %w", err)
	}
	err = k.lock.take(lock)
	if isCapped {
		err = errors.Join(capped, err)
	}
	k.lock.note(err)
	return nil
}
