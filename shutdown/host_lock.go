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

	mu            sync.Mutex    // guards all below; never held while a lock is closed
	held          io.Closer     // nil: none
	epoch         uint64        // from 1
	suspended     bool          // a shutdown is under way
	released      bool          // the shutdown has released the lock; none may be held until renew
	heldAtRelease bool          // a lock was held at that release
	adopted       bool          // held was taken during a shutdown: it is that of a previous agent
	adoption      chan struct{} // closed when the attempt to adopt a lock ends; nil: none is under way
	delayKnown    bool          // the host has answered a RequestDelay
	info          Inhibitor
	// info lacks State and Held, which status fills in.
	releaseTimer *time.Timer // releases the lock of this epoch; nil: no release is scheduled

	closing call.Group // the calls of Close
}

// status returns what [Manager.Inhibitor] shows.
func (l *hostLock) status() Inhibitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	shown := l.info
	shown.Held = l.held != nil
	switch {
	case shown.Off != "":
		shown.State = InhibitorOff
	case l.held != nil && l.adopted:
		shown.State = InhibitorAdopted
	case l.held != nil:
		shown.State = InhibitorHeld
	case l.suspended:
		shown.State = InhibitorLetGo
	default:
		shown.State = InhibitorTrying
	}
	return shown
}

// setErr sets the error that status shows; nil removes it.
func (l *hostLock) setErr(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.info.Err = err
}

// setSilent shows that the host does not answer, unless something else is known.
func (l *hostLock) setSilent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil && !l.suspended && l.info.Err == nil {
		l.info.Err = errSilent
	}
}

// setDelay records the delay that the host was asked for and the one that it granted.
func (l *hostLock) setDelay(requested, granted time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delayKnown = true
	l.info.Requested, l.info.Granted = requested, granted
	l.metrics.Delay(requested, granted)
}

// grantedDelay returns the delay that the host granted last; false if it was never asked.
func (l *hostLock) grantedDelay() (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.info.Granted, l.delayKnown
}

// suspend starts the epoch of a shutdown and returns it.
func (l *hostLock) suspend() (epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch++
	l.suspended = true
	return l.epoch
}

// hostWaits reports whether a lock is held, or was held until the shutdown released it.
func (l *hostLock) hostWaits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held != nil || l.released && l.heldAtRelease
}

// releaseAt schedules the release of the lock of an epoch, for the case that the drain does not
// release it before. A later call replaces the time.
func (l *hostLock) releaseAt(ctx context.Context, epoch uint64, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch != l.epoch || l.released {
		return
	}
	l.stopReleaseTimer()
	l.releaseTimer = time.AfterFunc(time.Until(at), func() {
		if err := l.release(ctx, epoch); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to let the host go at the end of its time")
		}
	})
}

// stopReleaseTimer undoes releaseAt. The mutex is held.
func (l *hostLock) stopReleaseTimer() {
	if l.releaseTimer != nil {
		l.releaseTimer.Stop()
		l.releaseTimer = nil
	}
}

// renew starts a new epoch after a cancelled shutdown. The keeper then takes a new lock.
func (l *hostLock) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch++
	l.suspended, l.released = false, false
	l.stopReleaseTimer()
}

// wanted reports whether the keeper should take a lock, and for which epoch.
func (l *hostLock) wanted() (epoch uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch, !l.suspended
}

// adoptable reports whether a shutdown is under way and no lock is held. It is true after the
// release too: a lock that the host has kept for a previous agent has to be taken, so that take
// closes it.
func (l *hostLock) adoptable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.suspended && l.held == nil
}

// beginAdoption begins an attempt to adopt the lock of a previous agent, before the loop hears of
// the shutdown: awaitAdoption waits from then on.
func (l *hostLock) beginAdoption() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.adoption == nil {
		l.adoption = make(chan struct{})
	}
}

// endAdoption ends the attempt, whether a lock was adopted or not. It does nothing if none is
// under way.
func (l *hostLock) endAdoption() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.adoption != nil {
		close(l.adoption)
		l.adoption = nil
	}
}

// awaitAdoption waits until the attempt to adopt a lock ends, if one is under way and no lock is
// held. It waits at most until a time or the end of ctx.
func (l *hostLock) awaitAdoption(ctx context.Context, until time.Time) {
	l.mu.Lock()
	adoption := l.adoption
	if l.held != nil {
		adoption = nil
	}
	l.mu.Unlock()
	if adoption != nil {
		wait(ctx, time.Until(until), adoption)
	}
}

// take stores a new lock and closes the old one after that, so that the host is held without a
// gap. A lock that arrives after the release is closed at once, because the host must not wait
// for it.
func (l *hostLock) take(ctx context.Context, lock io.Closer) error {
	l.mu.Lock()
	surplus := lock
	if !l.released {
		surplus, l.held, l.adopted = l.held, lock, l.suspended
		l.metrics.Inhibitor(true)
	}
	l.mu.Unlock()
	return l.closeLock(ctx, surplus)
}

// release closes the lock, so that the host goes on. It does nothing in a later epoch.
func (l *hostLock) release(ctx context.Context, epoch uint64) error {
	l.mu.Lock()
	if epoch != l.epoch {
		l.mu.Unlock()
		return nil
	}
	lock := l.held
	if !l.released {
		l.heldAtRelease = lock != nil
	}
	l.held, l.released = nil, true
	l.stopReleaseTimer()
	l.metrics.Inhibitor(false)
	l.mu.Unlock()
	return l.closeLock(ctx, lock)
}

// releaseForGood closes the lock at the end of Run. No lock is taken after it.
func (l *hostLock) releaseForGood(ctx context.Context) error {
	l.mu.Lock()
	lock := l.held
	l.held, l.suspended, l.released = nil, true, true
	l.stopReleaseTimer()
	l.metrics.Inhibitor(false)
	l.mu.Unlock()
	return l.closeLock(ctx, lock)
}

// closeTime bounds the wait for the Close of a lock.
const closeTime = time.Second

// closeLock closes a lock, even if ctx has ended. A nil lock needs nothing.
func (l *hostLock) closeLock(ctx context.Context, lock io.Closer) error {
	if lock == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	closed := call.Start(ctx, &l.closing, "the closing of the shutdown inhibitor", func(context.Context) (struct{}, error) {
		return struct{}{}, lock.Close()
	})
	if _, err := closed.Await(ctx, time.Now().Add(closeTime)); err != nil {
		return fmt.Errorf("failed to release the shutdown inhibitor: %w", err)
	}
	return nil
}
