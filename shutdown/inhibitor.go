package shutdown

import (
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/host"
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
	// Err says what is wrong with the lock: the host is unreachable, it refuses the lock, or it grants
	// so little that a bucket loses time (a *[source.DelayCappedError]). Nil: nothing is wrong, or no
	// host is watched.
	Err error
}

// inhibitor returns the state of the inhibitor lock. h is nil before Run, or if no host is watched: nothing is known then
// but what will be requested.
func (s *settings) inhibitor(h *host.Host) Inhibitor {
	shown := Inhibitor{Off: s.off, Budget: s.budget().Fit(s.requestedDelay(), nil)}
	if h == nil {
		return shown
	}
	status := h.Status()
	shown.Held, shown.Requested, shown.Granted, shown.Err = status.Held(), status.Requested, status.Granted, status.Err
	if granted, known := h.Granted(); known {
		shown.Budget = s.budget().Fit(s.opts.Plan.Cap(granted), nil)
	}
	return shown
}
