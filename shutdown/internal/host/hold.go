package host

import (
	"context"
	"io"
	"time"

	"k8s.io/klog/v2"
)

// Hold is the lock as a shutdown has it, from [Host.Suspend] to End. After End, after the next
// Suspend, and after [Host.Close] its methods do nothing. All methods may be called concurrently.
type Hold struct {
	lock   *lock
	waited bool // a lock was held when this Hold released it; guarded by the mutex of lock
}

// do calls f with the mutex held, if this Hold is the current one.
func (o *Hold) do(f func(l *lock)) {
	o.lock.do(func() {
		if o.lock.hold == o {
			f(o.lock)
		}
	})
}

// ReleaseAt has the lock released at a time, in case nobody does it before; at once, if the time has
// passed. A later call replaces the time. It stands until it has come: for the lock that Retake
// gets, and for the next Hold of the same shutdown too. ctx has the logger; its end changes nothing.
func (o *Hold) ReleaseAt(ctx context.Context, t time.Time) {
	o.do(func(l *lock) {
		l.stopAlarm()
		var alarm *time.Timer
		alarm = time.AfterFunc(time.Until(t), func() {
			l.calls.Go(func() string { return "the release of the shutdown inhibitor in time" }, func() {
				err := l.change(ctx, func() io.Closer {
					if l.alarm != alarm {
						return nil
					}
					l.alarm = nil
					return l.hold.release()
				})
				if err != nil {
					klog.FromContext(ctx).Error(err, "Failed to release the inhibitor lock at the end of its time")
				}
			})
		})
		l.alarm = alarm
	})
}

// release releases the lock, and returns the lock that is to be closed. The mutex is held.
func (o *Hold) release() io.Closer {
	if o.lock.phase != phaseSuspended {
		return nil
	}
	o.waited = o.lock.held != nil
	return o.lock.giveUp(phaseReleased)
}

// Release gives the lock up, and returns a function that closes it, for one call. A lock that comes later is closed
// at once. A Retake after Release gets a new one. closeLock waits a second until the lock is closed, even if
// its context has ended. After that its error says so, and the closing goes on in Options.Calls.
func (o *Hold) Release() (closeLock func(context.Context) error) {
	var held io.Closer
	o.do(func(*lock) { held = o.release() })
	return func(ctx context.Context) error { return o.lock.closeLock(ctx, held) }
}

// Retake has the session ask for a lock once, after the release. The host may refuse it.
// Call ReleaseAt too, if its time has passed. Retake does nothing before Release.
func (o *Hold) Retake() {
	o.do(func(l *lock) {
		if l.phase == phaseReleased {
			l.phase, o.waited = phaseSuspended, false
			l.seekLock()
		}
	})
}

// Waits reports whether a lock is held, or was until this Hold released it.
func (o *Hold) Waits() (waits bool) {
	o.lock.do(func() { waits = o.waited || o.lock.hold == o && o.lock.held != nil })
	return waits
}

// AwaitAdoption waits until the attempt to get a lock during the shutdown is over, if one is under
// way and no lock is held. It waits at most until a time or the end of ctx.
func (o *Hold) AwaitAdoption(ctx context.Context, until time.Time) {
	var adoption chan struct{}
	o.do(func(l *lock) { adoption = l.adoption })
	if adoption == nil {
		return
	}
	select {
	case <-adoption:
	case <-time.After(time.Until(until)):
	case <-ctx.Done():
	}
}

// End ends the shutdown: a lock is wanted again. The session takes a new one, and then closes the
// one that is held.
func (o *Hold) End() {
	o.do(func(l *lock) {
		l.hold, l.phase = nil, phaseWanted
		l.epoch++
		l.stopAlarm()
		l.wakeUp()
	})
}
