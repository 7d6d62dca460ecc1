package host

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/internal/call"
)

// closeTimeout is the timeout of closing a lock or a session.
const closeTimeout = time.Second

// phase says whether a lock may be taken and held.
type phase int

const (
	phaseWanted   phase = iota // no shutdown: a lock is wanted
	phaseKept                  // shutdown: a held lock is kept; if none is held, taskTryOnce may get one
	phaseReleased              // shutdown: the lock is released, and none may be held
	phaseClosed                // Run is over, and none may be held any more
)

// task is what a session has to do next about the lock, as nextTask returns it.
type task int

const (
	taskNone         task = iota // nothing
	taskRequestDelay             // request the delay
	taskTake                     // request the delay and take a lock
	taskTryOnce                  // try once to get a lock during a shutdown, usually the one that the previous agent has left
)

// lock owns the agent's inhibitor lock. It closes each lock that the host has granted exactly once. Each session and each end of
// a shutdown begins a new epoch. The session replaces a lock that was requested in an older epoch: it may have been lost with
// its session, or the host may let a lock delay only one shutdown.
type lock struct {
	calls   *call.Group
	metrics Metrics
	wake    chan struct{} // of size 1; signals a new task

	mu               sync.Mutex // guards all below; never held while a lock is closed
	phase            phase
	hold             *Hold         // of the shutdown in progress; nil: none
	held             io.Closer     // the lock that is held; nil: none
	adopted          bool          // held is the previous agent's lock
	hasTakenOwn      bool          // this agent has taken a lock of its own
	mayBeLost        bool          // a session was lost while this lock was held
	epoch            uint64        // counts sessions and ends of shutdowns
	heldEpoch        uint64        // the epoch in which held was requested
	isSessionUp      bool          // a session is connected
	attemptOver      chan struct{} // closed when the attempt to get a lock during a shutdown is over; nil: none is in progress
	scheduledRelease *time.Timer   // by ReleaseAt; nil: none is scheduled
}

// withMutex calls f with the mutex held.
func (l *lock) withMutex(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// withMutexThenClose calls f with the mutex held, and then, without the mutex, closes the lock that f returns, if any.
func (l *lock) withMutexThenClose(ctx context.Context, f func() (surplus io.Closer)) error {
	var surplus io.Closer
	l.withMutex(func() { surplus = f() })
	return l.closeLock(ctx, surplus)
}

// state returns the state of the lock. The mutex is held.
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

// beginSession records that a session is connected, and begins a new epoch. If no lock is held, an attempt to get one counts as
// in progress from now on, although the session makes it later (nextTask): if a shutdown is pending, its drain may begin
// before that, and must wait for the attempt (Hold.AwaitAttempt).
func (l *lock) beginSession() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isSessionUp = true
	l.epoch++
	l.beginAttempt() // unless a lock is held
}

// endSession records that the session has ended. If it was connected, the held lock may have been lost with it.
func (l *lock) endSession() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isSessionUp && l.held != nil {
		l.mayBeLost = true
	}
	l.isSessionUp = false
	l.endAttempt()
}

// nextTask returns what the session has to do now about the lock. A lock of an older epoch may not delay the host any more (lock):
//
//   - No shutdown, and a lock of the current epoch is held: only request the delay again.
//   - No shutdown, and no lock is held, or one of an older epoch: take a lock.
//   - A shutdown, and no lock is held: try once to get one.
//   - Otherwise nothing.
//
// It also returns the current epoch, which is that of a lock that the caller requests now.
func (l *lock) nextTask() (next task, epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	isHeldCurrent := l.held != nil && l.heldEpoch == l.epoch
	isAttemptDue := l.held == nil && l.attemptOver != nil
	switch {
	case l.phase == phaseWanted && isHeldCurrent:
		return taskRequestDelay, l.epoch
	case l.phase == phaseWanted:
		return taskTake, l.epoch
	case l.phase != phaseClosed && isAttemptDue:
		return taskTryOnce, l.epoch
	default:
		return taskNone, l.epoch
	}
}

// take makes given, a lock that the host has granted, the held lock, and only then closes the previous one, so that the agent
// is never without a lock. It returns the error of closing a lock. epoch is the epoch in which given was requested, and
// inShutdown says that a shutdown was in progress. Hosts then grant no new lock: given is the previous agent's, unless this agent
// has already taken a lock of its own.
func (l *lock) take(ctx context.Context, given io.Closer, epoch uint64, inShutdown bool) error {
	return l.withMutexThenClose(ctx, func() io.Closer {
		isPreviousAgents := inShutdown && !l.hasTakenOwn
		return l.setHeld(given, isPreviousAgents, epoch)
	})
}

// adopt makes the lock of the previous agent the held one. If another lock is held, it closes the previous agent's
// instead. previous is nil if the previous agent has left none. The epoch 0 is older than that of any session, so that
// the first session outside of a shutdown replaces the adopted lock by one of this agent.
func (l *lock) adopt(ctx context.Context, previous io.Closer) error {
	return l.withMutexThenClose(ctx, func() io.Closer {
		if previous == nil || l.held != nil {
			return previous
		}
		const isPreviousAgents, oldestEpoch = true, 0
		return l.setHeld(previous, isPreviousAgents, oldestEpoch)
	})
}

// setHeld makes given the held lock. epoch is the one in which given was requested: the session later replaces a lock of an
// older epoch. isPreviousAgents says that it is the previous
// agent's. setHeld returns the lock that the caller must close: the one that was held before, or nil if there was none.
// After the release it returns given itself, because no lock may delay the host any more. The mutex is held.
func (l *lock) setHeld(given io.Closer, isPreviousAgents bool, epoch uint64) (surplus io.Closer) {
	if l.phase == phaseReleased || l.phase == phaseClosed {
		return given
	}
	surplus = l.held
	l.held, l.heldEpoch, l.mayBeLost = given, epoch, false
	l.adopted = isPreviousAgents
	if !isPreviousAgents {
		l.hasTakenOwn = true
	}
	l.metrics.Inhibitor(true)
	l.endAttempt()
	return surplus
}

// drop enters a phase in which no lock is held. It returns the lock that was held, for the caller to close. The
// mutex is held.
func (l *lock) drop(next phase) (held io.Closer) {
	held = l.held
	l.phase, l.held, l.adopted, l.mayBeLost = next, nil, false, false
	l.metrics.Inhibitor(false)
	return held
}

// cancelScheduledRelease cancels the release that ReleaseAt has scheduled, if any. The mutex is held.
func (l *lock) cancelScheduledRelease() {
	if l.scheduledRelease != nil {
		l.scheduledRelease.Stop()
		l.scheduledRelease = nil
	}
}

// beginAttempt records that an attempt to get a lock is in progress, unless a lock is held. The mutex is held.
func (l *lock) beginAttempt() {
	if l.held == nil && l.attemptOver == nil {
		l.attemptOver = make(chan struct{})
	}
}

// endAttempt records that the attempt is over, so that nothing waits for it. The mutex is held.
func (l *lock) endAttempt() {
	if l.attemptOver != nil {
		close(l.attemptOver)
		l.attemptOver = nil
	}
}

// requestAttempt is called during a shutdown. If a session is connected and no lock is held, it makes the session ask the host
// for a lock, once. The mutex is held.
func (l *lock) requestAttempt() {
	if l.isSessionUp {
		l.beginAttempt()
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

// closeLock closes a lock, which may be nil, even if ctx has ended. If the Close takes longer than closeTimeout, closeLock
// returns an error, and the Close goes on.
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
