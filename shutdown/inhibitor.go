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

// InhibitorState says what a manager does about its host.
type InhibitorState string

const (
	// InhibitorOff means that no host is watched; [Inhibitor.Off] says why.
	InhibitorOff InhibitorState = "Off"
	// InhibitorTrying means that the lock is wanted and not held.
	InhibitorTrying InhibitorState = "Trying"
	// InhibitorHeld means that the host waits, unless Err says that it was lost.
	InhibitorHeld InhibitorState = "Held"
	// InhibitorAdopted means the same with a lock that the host has kept for a former
	// agent in the middle of a shutdown.
	InhibitorAdopted InhibitorState = "Adopted"
	// InhibitorLetGo means that a shutdown is under way and the host does not wait any
	// longer, or that Run is over.
	InhibitorLetGo InhibitorState = "LetGo"
)

// Inhibitor says how the manager holds its host.
type Inhibitor struct {
	State     InhibitorState
	Off       string        // why no host is watched; "": one is
	Held      bool          // a lock is held: the host waits, unless Err says it was lost
	Requested time.Duration // what the host was asked for; 0: not asked yet
	Granted   time.Duration // how long it waits
	// Err is why the hold is not as it should be: the host cannot be reached, it
	// refuses, or it waits for so much less than asked that a bucket has less than its
	// own time (a *[DelayCappedError]). Nil: all is well, or there is nothing to hold.
	Err error
}

// inhibitor owns the one lock. It is a handle that is closed exactly once, never
// a number that could be closed again when it belongs to someone else.
//
// A shutdown suspends it: no lock is asked for, as the host would refuse. Its end
// releases it, and its cancellation renews it: a new lock takes the place of the
// old one. Each of these begins an epoch; the end of a shutdown that was cancelled
// finds that its epoch is over and releases nothing.
type inhibitor struct {
	metrics *metrics.Shutdown

	mu        sync.Mutex // guards all below; never held while a lock is closed
	held      io.Closer  // nil: none
	epoch     uint64     // from 1
	suspended bool       // a shutdown is under way
	released  bool       // and is done: nothing may be held until renewed
	delayed   bool       // and a lock was held until then
	adopted   bool       // held is a former agent's
	asked     bool       // the delay was settled once
	shown     Inhibitor
	end       *time.Timer // releases the lock of this epoch; nil: no shutdown is under way

	calls call.Group // the closing of locks
}

// status is a copy of what is known.
func (i *inhibitor) status() Inhibitor {
	i.mu.Lock()
	defer i.mu.Unlock()
	shown := i.shown
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

// note shows a trouble; nil: it is over.
func (i *inhibitor) note(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.shown.Err = err
}

// silent shows that the host does not answer, unless the hold is settled.
func (i *inhibitor) silent() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.held == nil && !i.suspended && i.shown.Err == nil {
		i.shown.Err = errSilent
	}
}

// delay shows what the host was asked for and what it grants.
func (i *inhibitor) delay(requested, granted time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = true
	i.shown.Requested, i.shown.Granted = requested, granted
	i.metrics.Delay(requested, granted)
}

// limit is how long the host was found to wait; false: it was not asked.
func (i *inhibitor) limit() (time.Duration, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.shown.Granted, i.asked
}

// suspend says that a shutdown is under way, and gives the epoch for its release.
func (i *inhibitor) suspend() (epoch uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.epoch++
	i.suspended = true
	return i.epoch
}

// delays tells whether the host waits in this shutdown, or has waited until the lock was
// released.
func (i *inhibitor) delays() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.held != nil || i.released && i.delayed
}

// releaseAt has the lock of an epoch released at a time, whatever becomes of the drain
// that releases it before. A later call counts instead.
func (i *inhibitor) releaseAt(ctx context.Context, epoch uint64, at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if epoch != i.epoch || i.released {
		return
	}
	i.disarm()
	i.end = time.AfterFunc(time.Until(at), func() {
		if err := i.release(ctx, epoch); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to let the host go at the end of its time")
		}
	})
}

// disarm takes back what releaseAt has said. The mutex is held.
func (i *inhibitor) disarm() {
	if i.end != nil {
		i.end.Stop()
		i.end = nil
	}
}

// renew says that the shutdown was cancelled.
func (i *inhibitor) renew() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.epoch++
	i.suspended, i.released = false, false
	i.disarm()
}

// wanted tells whether a lock is to be taken, and for which epoch.
func (i *inhibitor) wanted() (epoch uint64, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.epoch, !i.suspended
}

// adoptable tells whether a shutdown is under way and no lock is held. One that is
// over already counts too: what the host has kept for a former agent must not
// hold it any longer.
func (i *inhibitor) adoptable() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.suspended && i.held == nil
}

// take puts a new lock in the place of the old one, which is closed after it, so
// that the host is held without a gap. A lock that comes when the shutdown is
// done already is closed at once: the host must not wait for it.
func (i *inhibitor) take(ctx context.Context, lock io.Closer) error {
	i.mu.Lock()
	surplus := lock
	if !i.released {
		surplus, i.held, i.adopted = i.held, lock, i.suspended
		i.metrics.Inhibitor(true)
	}
	i.mu.Unlock()
	return i.close(ctx, surplus)
}

// release closes the lock and lets the host go on, unless the epoch is over.
func (i *inhibitor) release(ctx context.Context, epoch uint64) error {
	i.mu.Lock()
	if epoch != i.epoch {
		i.mu.Unlock()
		return nil
	}
	lock := i.held
	if !i.released {
		i.delayed = lock != nil
	}
	i.held, i.released = nil, true
	i.disarm()
	i.metrics.Inhibitor(false)
	i.mu.Unlock()
	return i.close(ctx, lock)
}

// shut releases the lock for good.
func (i *inhibitor) shut(ctx context.Context) error {
	i.mu.Lock()
	lock := i.held
	i.held, i.suspended, i.released = nil, true, true
	i.disarm()
	i.metrics.Inhibitor(false)
	i.mu.Unlock()
	return i.close(ctx, lock)
}

// closeTime is how long the closing of a lock is waited for.
const closeTime = time.Second

// close closes a lock, nil included, also when ctx has ended.
func (i *inhibitor) close(ctx context.Context, lock io.Closer) error {
	if lock == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	closed := call.Start(ctx, &i.calls, "the closing of the shutdown inhibitor", func(context.Context) (struct{}, error) {
		return struct{}{}, lock.Close()
	})
	if _, err := closed.Await(ctx, time.Now().Add(closeTime)); err != nil {
		return fmt.Errorf("failed to release the shutdown inhibitor: %w", err)
	}
	return nil
}
