package shutdown

import (
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Inhibitor is the state of the inhibitor lock, as [Manager.Inhibitor] returns it.
type Inhibitor struct {
	Off       string        // why no host is watched; "" if one is
	Held      bool          // a lock is held: the host waits, unless Err says that the session was lost
	Requested time.Duration // the requested delay; 0 before the request
	// Granted is the delay that the host granted last; 0 before it has answered. It is read every 10 s
	// until a shutdown is announced.
	Granted time.Duration
	// Budget is the requested delay, part by part. Options.Plan.Limit shortens it and, once the host has
	// answered, so does a shorter grant.
	Budget plan.Budget
	// Err says what is wrong with the lock: Run has not been called or has ended, the host is unreachable,
	// it refuses the lock, or it grants so little that a bucket loses time (a *[source.DelayCappedError]).
	// Nil: nothing is wrong, or no host is watched.
	Err error
}

// inhibitor returns the state of the inhibitor lock. h is nil before Run, or if no host is watched: the result then has
// only the budget that would be requested, and why no host is watched.
func (s *settings) inhibitor(h *host.Host) Inhibitor {
	budgetFor := func(delay time.Duration) plan.Budget {
		return s.budget().Fit(delay, nil) // nil: which buckets have pods is not known
	}
	shown := Inhibitor{Off: s.whyNotWatching, Budget: budgetFor(s.requestedDelay())}
	if h == nil {
		return shown
	}
	status := h.Status()
	shown.Held, shown.Requested, shown.Granted, shown.Err = status.Held(), status.Requested, status.Granted, status.Err
	if status.Answered {
		shown.Budget = budgetFor(s.opts.Plan.Cap(status.Granted))
	}
	return shown
}

// changeLock carries out an effect on the inhibitor lock. Without a host there is no lock, and it does nothing.
//   - KeepLock: a shutdown is in progress. Keep the lock, but release it at e.Until in any case. The first KeepLock of a shutdown
//     takes control of the lock (s.hold), and later ones move the time.
//   - ReleaseLock: release the lock now.
//   - RetakeLock: try to take a lock again, during the same shutdown.
//   - TakeNextLock: the shutdown is over. Give up the control of the lock, so that the host takes one for the next shutdown.
func (s *shell) changeLock(e node.Effect) {
	h := s.host.Load()
	if h == nil {
		return
	}
	if shutdownBegins := e.Do == node.KeepLock && s.hold == nil; shutdownBegins {
		s.hold = h.BeginShutdown()
		s.reportIfHostDoesNotWait(s.hold, s.log.TimeOf(e.Until))
	}
	if s.hold == nil { // no shutdown is in progress
		return
	}
	switch e.Do {
	case node.KeepLock:
		s.hold.ReleaseAt(s.ctx, s.log.TimeOf(e.Until))
	case node.RetakeLock:
		s.hold.Retake()
	case node.TakeNextLock:
		s.hold.End()
		s.hold = nil
	default: // node.ReleaseLock
		s.releaseLock()
	}
}

// releaseLock releases the lock at once, and closes it in another goroutine.
func (s *shell) releaseLock() {
	closeLock, ctx := s.hold.Release(), s.ctx
	s.calls.Go(func() string { return "the release of the shutdown inhibitor" }, func() {
		if err := closeLock(ctx); err != nil {
			s.step(node.Failed{Text: err.Error()})
		}
	})
}

// reportIfHostDoesNotWait tells the core (package node) if the host does not wait for the drain: no lock is held, and the attempt
// to adopt the previous agent's lock gets none by the time until. It does not block.
func (s *shell) reportIfHostDoesNotWait(hold *host.Hold, until time.Time) {
	if hold.HostWaits() {
		return
	}
	ctx := s.ctx
	s.calls.Go(func() string { return "the wait for a lock to adopt" }, func() {
		hold.AwaitAttempt(ctx, until)
		if ctx.Err() != nil { // Run and TerminateAll have ended
			return
		}
		if !hold.HostWaits() {
			s.step(node.LockNotHeld{})
		}
	})
}
