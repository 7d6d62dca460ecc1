package shutdown

import (
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// InhibitorState is what a manager does with the inhibitor lock of its host.
type InhibitorState string

const (
	// InhibitorOff means that no host is watched. [Inhibitor.Off] says why.
	InhibitorOff InhibitorState = "Off"
	// InhibitorTrying means that the lock is wanted but not held.
	InhibitorTrying InhibitorState = "Trying"
	// InhibitorHeld means that the lock is held: the host waits, unless Err says that the session
	// was lost.
	InhibitorHeld InhibitorState = "Held"
	// InhibitorAdopted means that the lock that is held is that of a previous agent.
	InhibitorAdopted InhibitorState = "Adopted"
	// InhibitorReleased means that no lock is held because a shutdown is under way or Run is over.
	InhibitorReleased InhibitorState = "Released"
)

// Inhibitor is the state of the inhibitor lock, as [Manager.Inhibitor] returns it.
type Inhibitor struct {
	State     InhibitorState
	Off       string        // why no host is watched; "" if one is
	Held      bool          // a lock is held: the host waits, unless Err says that the session was lost
	Requested time.Duration // the delay that the host was asked for; 0 before that
	// Granted is how long the host waits, as it said last; 0 before it has answered. It is read every
	// 10 s until a shutdown is announced.
	Granted time.Duration
	// Budget is what was asked for, part by part, as the host's limit shortens it. Before the host
	// has answered it is not shortened.
	Budget plan.Budget
	// Err is the reason why the lock is not held as wanted: the host cannot be reached, it
	// refuses, or it waits for so much less than asked that a bucket loses time (a
	// *[source.DelayCappedError]). Nil if all is well or no host is watched.
	Err error
}

// inhibitor returns the state of the inhibitor lock; h is nil before Run.
func (s *settings) inhibitor(h *host.Host) Inhibitor {
	shown := Inhibitor{State: InhibitorTrying, Off: s.off, Budget: s.budget()}
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
		shown.Budget = shown.Budget.Fit(granted, nil)
	}
	return shown
}
