package host

import (
	"context"
	"io"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/times"
)

// Hold controls the lock during a shutdown, from [Host.Suspend] to End. Its methods do nothing after
// End, the next Suspend, or [Host.Close]. They may be called concurrently.
type Hold struct {
	lock    *lock
	wasHeld bool // this Hold released a lock; guarded by lock.mu
}

// ifCurrent calls f with the mutex held, if this is the current Hold.
func (o *Hold) ifCurrent(f func(l *lock)) {
	o.lock.do(func() {
		if o.lock.hold == o {
			f(o.lock)
		}
	})
}

// ReleaseAt releases the lock at a time, at once if it has passed. A later call replaces the time. It
// also applies to a lock taken by Retake before it, and to the next Hold of the same shutdown. ctx has
// the logger; its end has no effect.
func (o *Hold) ReleaseAt(ctx context.Context, t time.Time) {
	o.ifCurrent(func(l *lock) {
		l.stopAlarm()
		var alarm *time.Timer
		alarm = time.AfterFunc(time.Until(t), func() {
			l.calls.Go(func() string { return "the release of the shutdown inhibitor in time" }, func() {
				err := l.closeResult(ctx, func() io.Closer {
					if l.alarm != alarm {
						return nil
					}
					l.alarm = nil
					return l.hold.release()
				})
				if err != nil {
					klog.FromContext(ctx).Error(err, "Failed to release the inhibitor lock at its deadline")
				}
			})
		})
		l.alarm = alarm
	})
}

// release drops the lock and returns it to be closed. The mutex is held.
func (o *Hold) release() io.Closer {
	if o.lock.phase != phaseSuspended {
		return nil
	}
	o.wasHeld = o.lock.held != nil
	return o.lock.drop(phaseReleased)
}

// Release drops the lock and returns a function that closes it, to be called once. A lock that arrives
// later is closed at once, unless Retake was called. closeLock waits at most a second, even if its
// context has ended; then it returns an error, and the Close goes on in Options.Calls.
func (o *Hold) Release() (closeLock func(context.Context) error) {
	var held io.Closer
	o.ifCurrent(func(*lock) { held = o.release() })
	return func(ctx context.Context) error { return o.lock.closeLock(ctx, held) }
}

// Retake lets the session ask for a lock once, after Release. The host may refuse it. Call ReleaseAt
// again if its time has passed.
func (o *Hold) Retake() {
	o.ifCurrent(func(l *lock) {
		if l.phase == phaseReleased {
			l.phase, o.wasHeld = phaseSuspended, false
			l.startAdoption()
		}
	})
}

// Waits reports whether a lock is held, or was when this Hold released it.
func (o *Hold) Waits() (waits bool) {
	o.lock.do(func() { waits = o.wasHeld || o.lock.hold == o && o.lock.held != nil })
	return waits
}

// AwaitAdoption waits for an attempt to take or adopt a lock during the shutdown, if one is in
// progress, until a time or the end of ctx.
func (o *Hold) AwaitAdoption(ctx context.Context, until time.Time) {
	var adoption chan struct{}
	o.ifCurrent(func(l *lock) { adoption = l.adoption })
	if adoption == nil {
		return
	}
	select {
	case <-adoption:
	case <-times.After(until):
	case <-ctx.Done():
	}
}

// End ends the shutdown. The session takes a new lock and then closes the held one.
func (o *Hold) End() {
	o.ifCurrent(func(l *lock) {
		l.hold, l.phase = nil, phaseWanted
		l.epoch++
		l.stopAlarm()
		l.wakeUp()
	})
}
