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

// closeTimeout bounds the wait for a Close.
const closeTimeout = time.Second

// phase says whether a lock may be held.
type phase int

const (
	phaseWanted    phase = iota // no shutdown: a lock is wanted
	phaseSuspended              // shutdown: the held lock is kept
	phaseReleased               // the lock is released, and none may be held
	phaseClosed                 // Run is over, and none may be held any more
)

// task is what a session has to do about the lock.
type task int

const (
	taskNone  task = iota // nothing
	taskKeep              // request the delay
	taskTake              // request the delay and take a lock
	taskAdopt             // try once to adopt the previous agent's lock
)

// lock owns the one inhibitor lock, and closes each lock exactly once. Each session and each end of a
// shutdown begins a new epoch; a lock of an older epoch is replaced.
type lock struct {
	calls   *call.Group
	metrics *metrics.Shutdown
	wake    chan struct{} // of size 1; signalled for a new task

	mu          sync.Mutex // guards all below; never held while a lock is closed
	phase       phase
	hold        *Hold         // of the shutdown in progress; nil: none
	held        io.Closer     // nil: none
	adopted     bool          // held is the previous agent's
	hasTakenOwn bool          // this agent has taken a lock outside of a shutdown
	mayBeLost   bool          // a session was lost while held was held
	epoch       uint64        // counts sessions and ends of shutdowns
	heldEpoch   uint64        // the epoch in which held was requested
	isSessionUp bool          // a session is up
	adoption    chan struct{} // closed when the adoption attempt ends; nil: none is in progress
	alarm       *time.Timer   // of ReleaseAt; nil: not set
}

// do calls f with the mutex held.
func (l *lock) do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// closeResult calls f with the mutex held, and closes the lock that f returns.
func (l *lock) closeResult(ctx context.Context, f func() (surplus io.Closer)) error {
	var surplus io.Closer
	l.do(func() { surplus = f() })
	return l.closeLock(ctx, surplus)
}

// state returns the state for Status. The mutex is held.
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

// beginSession enables the tasks of a session. If no lock is held, an adoption attempt begins before
// the listener learns whether a shutdown is pending.
func (l *lock) beginSession() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isSessionUp = true
	l.epoch++
	l.beginAdoption()
}

// endSession disables the tasks of a session.
func (l *lock) endSession() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mayBeLost = l.mayBeLost || l.isSessionUp && l.held != nil
	l.isSessionUp = false
	l.endAdoption()
}

// next returns the next task, and the epoch for a lock requested now.
func (l *lock) next() (task, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.phase == phaseWanted && l.held != nil && l.heldEpoch == l.epoch:
		return taskKeep, l.epoch
	case l.phase == phaseWanted:
		return taskTake, l.epoch
	case l.phase != phaseClosed && l.held == nil && l.adoption != nil:
		return taskAdopt, l.epoch
	default:
		return taskNone, l.epoch
	}
}

// take holds a granted lock, and then closes the previous one, so that there is no gap. adopting says
// that it was requested during a shutdown.
func (l *lock) take(ctx context.Context, given io.Closer, epoch uint64, adopting bool) error {
	return l.closeResult(ctx, func() io.Closer { return l.setHeld(given, adopting && !l.hasTakenOwn, epoch) })
}

// adopt holds the previous agent's lock, which may be nil. If a lock is held, it closes left.
func (l *lock) adopt(ctx context.Context, left io.Closer) error {
	return l.closeResult(ctx, func() io.Closer {
		if left == nil || l.held != nil {
			return left
		}
		return l.setHeld(left, true, 0)
	})
}

// setHeld makes given the held lock and returns the previous one to be closed. After the release it
// returns given, because no lock may delay the host. The mutex is held.
func (l *lock) setHeld(given io.Closer, adopted bool, epoch uint64) (surplus io.Closer) {
	if l.phase == phaseReleased || l.phase == phaseClosed {
		return given
	}
	surplus, l.held = l.held, given
	l.adopted, l.mayBeLost, l.heldEpoch = adopted, false, epoch
	l.hasTakenOwn = l.hasTakenOwn || !adopted
	l.metrics.Inhibitor(true)
	l.endAdoption()
	return surplus
}

// drop returns the held lock to be closed, and enters a phase without one. The mutex is held.
func (l *lock) drop(next phase) io.Closer {
	held := l.held
	l.phase, l.held, l.adopted, l.mayBeLost = next, nil, false, false
	l.metrics.Inhibitor(false)
	return held
}

// stopAlarm cancels ReleaseAt. The mutex is held.
func (l *lock) stopAlarm() {
	if l.alarm != nil {
		l.alarm.Stop()
		l.alarm = nil
	}
}

// beginAdoption begins an adoption attempt, if no lock is held. The mutex is held.
func (l *lock) beginAdoption() {
	if l.held == nil && l.adoption == nil {
		l.adoption = make(chan struct{})
	}
}

// endAdoption ends the attempt. The mutex is held.
func (l *lock) endAdoption() {
	if l.adoption != nil {
		close(l.adoption)
		l.adoption = nil
	}
}

// startAdoption lets the session try to get a lock during a shutdown. The mutex is held.
func (l *lock) startAdoption() {
	if l.isSessionUp {
		l.beginAdoption()
		l.wakeUp()
	}
}

// wakeUp signals a new task to the session. It never blocks.
func (l *lock) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default: // already signalled
	}
}

// closeLock closes a lock, which may be nil, even if ctx has ended.
func (l *lock) closeLock(ctx context.Context, lock io.Closer) error {
	if lock == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	closed := call.Start(ctx, l.calls, "the closing of the shutdown inhibitor", func(context.Context) (struct{}, error) {
		return struct{}{}, lock.Close()
	})
	if _, err := closed.Await(ctx, time.Now().Add(closeTimeout)); err != nil {
		return fmt.Errorf("failed to release the shutdown inhibitor: %w", err)
	}
	return nil
}
