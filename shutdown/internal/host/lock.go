package host

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/metrics"
)

// closeTime bounds the wait for the Close of a lock.
const closeTime = time.Second

// phase is what the lock is for.
type phase int

const (
	phaseWanted    phase = iota // no shutdown is under way: a lock is wanted
	phaseSuspended              // a shutdown is under way: the lock that is held stays
	phaseReleased               // the lock is released: none may be held
	phaseClosed                 // Run is over: no lock may be held any more
)

// task is what a session is to do about the lock.
type task int

const (
	taskRest  task = iota // nothing
	taskKeep              // nothing, as long as the host waits long enough
	taskTake              // take a new lock
	taskAdopt             // try once to get the lock that a previous agent left
)

// lock owns the one inhibitor lock. The lock is a handle that is closed exactly once, never a
// number that could be closed again when it belongs to someone else. Each end of a shutdown
// begins a new epoch, and so does each session: a lock of an older one is replaced.
type lock struct {
	calls   *call.Group
	metrics *metrics.Shutdown
	wake    chan struct{} // of size 1; signalled when there is a new task

	mu       sync.Mutex // guards all below; never held while a lock is closed
	phase    phase
	hold     *Hold         // of the shutdown that is under way; nil: none is
	held     io.Closer     // nil: none
	adopted  bool          // held is the lock of a previous agent
	heldOwn  bool          // this agent has held a lock that it asked for outside of a shutdown
	inDoubt  bool          // a session was lost since held was taken, and perhaps held with it
	epoch    uint64        // counts sessions and ends of shutdowns
	taken    uint64        // the epoch in which held was asked for
	session  bool          // a session is up
	adoption chan struct{} // closed when the attempt to adopt a lock ends; nil: none is under way
	alarm    *time.Timer   // releases the lock at a time; nil: none stands
}

// do calls f with the mutex held.
func (l *lock) do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// change calls f with the mutex held, and closes the lock that f returns.
func (l *lock) change(ctx context.Context, f func() (surplus io.Closer)) error {
	var surplus io.Closer
	l.do(func() { surplus = f() })
	return l.closeLock(ctx, surplus)
}

// state returns the state for the status. The mutex is held.
func (l *lock) state() State {
	switch {
	case l.adopted:
		return StateAdopted
	case l.held != nil:
		return StateHeld
	case l.phase == phaseWanted:
		return StateTrying
	default:
		return StateReleased
	}
}

// beginSession begins the tasks of a session. If no lock is held, an attempt to adopt one is under
// way from now on, before anybody has heard from the session whether a shutdown is.
func (l *lock) beginSession() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = true
	l.epoch++
	l.beginAdoption()
}

// endSession ends the tasks of a session, if it had begun them.
func (l *lock) endSession() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inDoubt = l.inDoubt || l.session && l.held != nil
	l.session = false
	l.endAdoption()
}

// next returns the task of the session, and the epoch of a lock that is asked for now.
func (l *lock) next() (task, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.phase == phaseWanted && l.held != nil && l.taken == l.epoch:
		return taskKeep, l.epoch
	case l.phase == phaseWanted:
		return taskTake, l.epoch
	case l.phase != phaseClosed && l.held == nil && l.adoption != nil:
		return taskAdopt, l.epoch
	default:
		return taskRest, l.epoch
	}
}

// take holds a lock that the host gave and closes the one before, so that the lock is held
// without a gap. adopting says that it was asked for during a shutdown.
func (l *lock) take(ctx context.Context, given io.Closer, epoch uint64, adopting bool) error {
	return l.change(ctx, func() io.Closer { return l.keep(given, adopting && !l.heldOwn, epoch) })
}

// adopt holds the lock that a previous agent left; nil: it left none. It closes the lock if one is
// held already.
func (l *lock) adopt(ctx context.Context, left io.Closer) error {
	return l.change(ctx, func() io.Closer {
		if left == nil || l.held != nil {
			return left
		}
		return l.keep(left, true, 0)
	})
}

// keep makes a lock the one that is held, and returns the one that is to be closed: that before,
// or, after the release, the given one, because the host must not wait for it. The mutex is held.
func (l *lock) keep(given io.Closer, adopted bool, epoch uint64) (surplus io.Closer) {
	if l.phase == phaseReleased || l.phase == phaseClosed {
		return given
	}
	surplus, l.held = l.held, given
	l.adopted, l.inDoubt, l.taken = adopted, false, epoch
	l.heldOwn = l.heldOwn || !adopted
	l.metrics.Inhibitor(true)
	l.endAdoption()
	return surplus
}

// giveUp returns the lock that is to be closed, and enters a phase in which none may be held. The
// mutex is held.
func (l *lock) giveUp(next phase) io.Closer {
	held := l.held
	l.phase, l.held, l.adopted, l.inDoubt = next, nil, false, false
	l.metrics.Inhibitor(false)
	return held
}

// stopAlarm undoes ReleaseAt. The mutex is held.
func (l *lock) stopAlarm() {
	if l.alarm != nil {
		l.alarm.Stop()
		l.alarm = nil
	}
}

// beginAdoption begins an attempt to adopt a lock, if none is held. The mutex is held.
func (l *lock) beginAdoption() {
	if l.held == nil && l.adoption == nil {
		l.adoption = make(chan struct{})
	}
}

// endAdoption ends the attempt, whether a lock was adopted or not. The mutex is held.
func (l *lock) endAdoption() {
	if l.adoption != nil {
		close(l.adoption)
		l.adoption = nil
	}
}

// seekLock has the session try to get a lock in the middle of a shutdown. The mutex is held.
func (l *lock) seekLock() {
	if l.session {
		l.beginAdoption()
		l.wakeUp()
	}
}

// wakeUp tells the session that there is a new task. It never blocks.
func (l *lock) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default: // a signal is waiting already
	}
}

// closeLock closes a lock, even if ctx has ended. A nil lock needs nothing.
func (l *lock) closeLock(ctx context.Context, lock io.Closer) error {
	if lock == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	closed := call.Start(ctx, l.calls, "the closing of the shutdown inhibitor", func(context.Context) (struct{}, error) {
		return struct{}{}, lock.Close()
	})
	if _, err := closed.Await(ctx, time.Now().Add(closeTime)); err != nil {
		return fmt.Errorf("failed to release the shutdown inhibitor: %w", err)
	}
	return nil
}
