package shutdown

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// hostLock owns the one inhibitor lock of the manager. The lock is a handle that is closed
// exactly once, never a number that could be closed again when it belongs to someone else.
//
// A shutdown suspends the hostLock: no lock is requested, because the host would refuse it. The
// end of the shutdown releases the lock. A cancellation renews it: a new lock replaces the old
// one. Each of suspend and renew starts a new epoch. A release of an old epoch does nothing, so
// that a cancelled drain cannot release the lock of its successor.
type hostLock struct {
	metrics *metrics.Shutdown

	mu            sync.Mutex // guards all below; never held while a lock is closed
	held          io.Closer  // nil: none
	epoch         uint64     // from 1
	suspended     bool       // a shutdown is under way
	released      bool       // the shutdown has released the lock; none may be held until renew
	heldAtRelease bool       // a lock was held at that release
	adopted       bool       // held was taken during a shutdown: it is that of a previous agent
	delayKnown    bool       // the host has answered a RequestDelay
	info          Inhibitor
	// info lacks State and Held, which status fills in.
	releaseTimer *time.Timer // releases the lock of this epoch; nil: no release is scheduled

	closing call.Group // the calls of Close
}

// status returns what [Manager.Inhibitor] shows.
func (i *hostLock) status() Inhibitor {
	i.mu.Lock()
	defer i.mu.Unlock()
	shown := i.info
	shown.Held = i.held != nil
	switch {
	case shown.Off != "":
		shown.State = InhibitorOff
	case i.held != nil && i.adopted:
		shown.State = InhibitorAdopted
	case i.held != nil:
		shown.State = InhibitorHeld
	case i.suspended:
		shown.State = InhibitorLetGo
	default:
		shown.State = InhibitorTrying
	}
	return shown
}

// setErr sets the error that status shows; nil removes it.
func (i *hostLock) setErr(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.info.Err = err
}

// setSilent shows that the host does not answer, unless something else is known.
func (i *hostLock) setSilent() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.held == nil && !i.suspended && i.info.Err == nil {
		i.info.Err = errSilent
	}
}

// setDelay records the delay that the host was asked for and the one that it granted.
func (i *hostLock) setDelay(requested, granted time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.delayKnown = true
	i.info.Requested, i.info.Granted = requested, granted
	i.metrics.Delay(requested, granted)
}

// grantedDelay returns the delay that the host granted last; false if it was never asked.
func (i *hostLock) grantedDelay() (time.Duration, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.info.Granted, i.delayKnown
}

// suspend starts the epoch of a shutdown and returns it.
func (i *hostLock) suspend() (epoch uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.epoch++
	i.suspended = true
	return i.epoch
}

// hostWaits reports whether a lock is held, or was held until the shutdown released it.
func (i *hostLock) hostWaits() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.held != nil || i.released && i.heldAtRelease
}

// releaseAt schedules the release of the lock of an epoch, for the case that the drain does not
// release it before. A later call replaces the time.
func (i *hostLock) releaseAt(ctx context.Context, epoch uint64, at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if epoch != i.epoch || i.released {
		return
	}
	i.stopReleaseTimer()
	i.releaseTimer = time.AfterFunc(time.Until(at), func() {
		if err := i.release(ctx, epoch); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to let the host go at the end of its time")
		}
	})
}

// stopReleaseTimer undoes releaseAt. The mutex is held.
func (i *hostLock) stopReleaseTimer() {
	if i.releaseTimer != nil {
		i.releaseTimer.Stop()
		i.releaseTimer = nil
	}
}

// renew starts a new epoch after a cancelled shutdown. The keeper then takes a new lock.
func (i *hostLock) renew() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.epoch++
	i.suspended, i.released = false, false
	i.stopReleaseTimer()
}

// wanted reports whether the keeper should take a lock, and for which epoch.
func (i *hostLock) wanted() (epoch uint64, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.epoch, !i.suspended
}

// adoptable reports whether a shutdown is under way and no lock is held. It is true after the
// release too: a lock that the host has kept for a previous agent has to be taken, so that take
// closes it.
func (i *hostLock) adoptable() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.suspended && i.held == nil
}

// take stores a new lock and closes the old one after that, so that the host is held without a
// gap. A lock that arrives after the release is closed at once, because the host must not wait
// for it.
func (i *hostLock) take(ctx context.Context, lock io.Closer) error {
	i.mu.Lock()
	surplus := lock
	if !i.released {
		surplus, i.held, i.adopted = i.held, lock, i.suspended
		i.metrics.Inhibitor(true)
	}
	i.mu.Unlock()
	return i.closeLock(ctx, surplus)
}

// release closes the lock, so that the host goes on. It does nothing in a later epoch.
func (i *hostLock) release(ctx context.Context, epoch uint64) error {
	i.mu.Lock()
	if epoch != i.epoch {
		i.mu.Unlock()
		return nil
	}
	lock := i.held
	if !i.released {
		i.heldAtRelease = lock != nil
	}
	i.held, i.released = nil, true
	i.stopReleaseTimer()
	i.metrics.Inhibitor(false)
	i.mu.Unlock()
	return i.closeLock(ctx, lock)
}

// releaseForGood closes the lock at the end of Run. No lock is taken after it.
func (i *hostLock) releaseForGood(ctx context.Context) error {
	i.mu.Lock()
	lock := i.held
	i.held, i.suspended, i.released = nil, true, true
	i.stopReleaseTimer()
	i.metrics.Inhibitor(false)
	i.mu.Unlock()
	return i.closeLock(ctx, lock)
}

// closeTime bounds the wait for the Close of a lock.
const closeTime = time.Second

// closeLock closes a lock, even if ctx has ended. A nil lock needs nothing.
func (i *hostLock) closeLock(ctx context.Context, lock io.Closer) error {
	if lock == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	closed := call.Start(ctx, &i.closing, "the closing of the shutdown inhibitor", func(context.Context) (struct{}, error) {
		return struct{}{}, lock.Close()
	})
	if _, err := closed.Await(ctx, time.Now().Add(closeTime)); err != nil {
		return fmt.Errorf("failed to release the shutdown inhibitor: %w", err)
	}
	return nil
}
