package shutdown

import (
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// InhibitorState is the state of the manager's inhibitor lock.
type InhibitorState string

const (
	// InhibitorOff means that no host is watched. [Inhibitor.Off] says why.
	InhibitorOff InhibitorState = "Off"
	// InhibitorTrying means that the manager tries to take the lock.
	InhibitorTrying InhibitorState = "Trying"
	// InhibitorHeld means that the lock is held. The host waits, unless Err says that the session was
	// lost.
	InhibitorHeld InhibitorState = "Held"
	// InhibitorAdopted means that the manager holds the lock of a previous agent.
	InhibitorAdopted InhibitorState = "Adopted"
	// InhibitorReleased means that the lock was released in a shutdown or at the end of Run.
	InhibitorReleased InhibitorState = "Released"
)

// Inhibitor is the state of the inhibitor lock, as [Manager.Inhibitor] returns it.
type Inhibitor struct {
	State     InhibitorState
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
	shown := Inhibitor{State: InhibitorTrying, Off: s.off, Budget: s.budget().Fit(s.requestedDelay(), nil)}
	if !s.watches() {
		shown.State = InhibitorOff
	}
	if h == nil {
		return shown
	}
	status := h.Status()
	shown.State, shown.Held = InhibitorState(status.State), status.Held()
	shown.Requested, shown.Granted, shown.Err = status.Requested, status.Granted, status.Err
	if granted, known := h.Granted(); known {
		shown.Budget = s.budget().Fit(s.opts.Plan.Cap(granted), nil)
	}
	return shown
}
