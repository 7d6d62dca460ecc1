package host

import (
	"context"
	"io"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/times"
)

// Hold controls the lock during a shutdown, from [Host.BeginShutdown] to End. Its methods do nothing after
// End, the next BeginShutdown, or [Host.Close]. They may be called concurrently.
type Hold struct {
	lock    *lock
	wasHeld bool // a lock was held when this Hold released it; guarded by lock.mu
}

// ifCurrent calls f with the mutex held, unless this Hold has ended or another one has replaced it.
func (o *Hold) ifCurrent(f func(l *lock)) {
	o.lock.withMutex(func() {
		if o.lock.hold == o {
			f(o.lock)
		}
	})
}

// ReleaseAt schedules the release of the lock for t, or for now if t has passed. The lock is released then even if calls hang.
// A later call of ReleaseAt replaces t. If Retake takes a lock again before t, that lock too is released at t, and so is the
// lock of a Hold that replaces this one in the same shutdown. ctx has the logger; its end has no effect.
func (o *Hold) ReleaseAt(ctx context.Context, t time.Time) {
	o.ifCurrent(func(l *lock) {
		l.cancelScheduledRelease() // that of an earlier ReleaseAt
		var timer *time.Timer
		isScheduled := func() bool { return l.scheduledRelease == timer } // false: it was cancelled while the timer fired
		timer = time.AfterFunc(time.Until(t), func() {
			l.calls.Go(func() string { return "the release of the shutdown inhibitor in time" }, func() { l.releaseIf(ctx, isScheduled) })
		})
		l.scheduledRelease = timer
	})
}

// releaseIf carries out the scheduled release, if isScheduled returns true with the mutex held.
func (l *lock) releaseIf(ctx context.Context, isScheduled func() bool) {
	err := l.withMutexThenClose(ctx, func() io.Closer {
		if !isScheduled() {
			return nil
		}
		l.scheduledRelease = nil
		return l.hold.release()
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to release the inhibitor lock at its deadline")
	}
}

// release begins phaseReleased, in which no lock may be held. It returns the lock that was held (nil: none was), which the
// caller closes without the mutex, and sets wasHeld. If the lock was released before, or Run is over, it changes nothing and
// returns nil. The mutex is held.
func (o *Hold) release() (held io.Closer) {
	if o.lock.phase != phaseKept {
		return nil
	}
	o.wasHeld = o.lock.held != nil
	return o.lock.drop(phaseReleased)
}

// Release releases the lock in two steps, so that the caller may hold a mutex: Release forgets the lock without blocking, and
// closeLock, which the caller must call once, closes it. A lock that the host grants later is closed at once, unless Retake was
// called. closeLock waits at most a second for the Close of the lock to return, even if its context has ended. If the Close
// takes longer, closeLock returns an error, and the Close continues in the group Options.Calls.
func (o *Hold) Release() (closeLock func(context.Context) error) {
	var held io.Closer
	o.ifCurrent(func(*lock) { held = o.release() })
	return func(ctx context.Context) error { return o.lock.closeLock(ctx, held) }
}

// Retake undoes a release in this shutdown: a lock may be held again, and the session makes one attempt to get one from the
// host, which may refuse it (AwaitAttempt waits for the attempt). The time of ReleaseAt still applies if it has not passed;
// otherwise call ReleaseAt again. If the lock was not released, Retake does nothing.
func (o *Hold) Retake() {
	o.ifCurrent(func(l *lock) {
		if l.phase == phaseReleased {
			l.phase, o.wasHeld = phaseKept, false
			l.requestAttempt()
		}
	})
}

// HostWaits reports whether the host waits for this shutdown: a lock is held, or was until this Hold released it.
func (o *Hold) HostWaits() (waits bool) {
	o.lock.withMutex(func() {
		isCurrent := o.lock.hold == o
		isHeld := isCurrent && o.lock.held != nil
		waits = isHeld || o.wasHeld
	})
	return waits
}

// AwaitAttempt waits until the session's attempt to get a lock during the shutdown is over, but not beyond the given
// time or the end of ctx. If no attempt is in progress, it returns at once.
func (o *Hold) AwaitAttempt(ctx context.Context, until time.Time) {
	var attemptOver chan struct{}
	o.ifCurrent(func(l *lock) { attemptOver = l.attemptOver })
	if attemptOver == nil { // no attempt is in progress
		return
	}
	select {
	case <-attemptOver:
	case <-times.After(until):
	case <-ctx.Done():
	}
}

// End ends the shutdown, because it was cancelled. The session takes a new lock for the next shutdown, and only then closes the
// held one.
func (o *Hold) End() {
	o.ifCurrent(func(l *lock) {
		l.hold, l.phase = nil, phaseWanted
		l.epoch++ // the host may let a lock delay only one shutdown: in a new epoch the session replaces the lock
		l.cancelScheduledRelease()
		l.wakeUp()
	})
}
