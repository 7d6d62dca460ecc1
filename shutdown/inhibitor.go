package shutdown

import (
	"context"
	"time"

	"k8s.io/klog/v2"

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
	// InhibitorAdopted means that the lock that is held is that of a former agent.
	InhibitorAdopted InhibitorState = "Adopted"
	// InhibitorLetGo means that no lock is held because a shutdown is under way or Run is over.
	InhibitorLetGo InhibitorState = "LetGo"
)

// Inhibitor is the state of the inhibitor lock, as [Manager.Inhibitor] returns it.
type Inhibitor struct {
	State     InhibitorState
	Off       string        // why no host is watched; "" if one is
	Held      bool          // a lock is held: the host waits, unless Err says that the session was lost
	Requested time.Duration // the delay that the host was asked for; 0 before that
	Granted   time.Duration // how long the host waits; 0 before it has answered
	// Budget is what was asked for, part by part, as the host's limit shortens it. Before the host
	// has answered it is not shortened.
	Budget plan.Budget
	// Err is the reason why the lock is not held as wanted: the host cannot be reached, it
	// refuses, or it waits for so much less than asked that a bucket loses time (a
	// *[DelayCappedError]). Nil if all is well or no host is watched.
	Err error
}

// Inhibitor returns the state of the inhibitor lock and how long the host waits.
func (m *Manager) Inhibitor() Inhibitor {
	shown := Inhibitor{State: InhibitorTrying, Off: m.off, Budget: m.budget()}
	if !m.watches() {
		shown.State = InhibitorOff
		return shown
	}
	h := m.host.Load()
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

// granted returns the delay that the host has granted last; false if it was never asked.
func (m *Manager) granted() (time.Duration, bool) {
	if h := m.host.Load(); h != nil {
		return h.Granted()
	}
	return 0, false
}

// budget returns what a whole drain needs.
func (m *Manager) budget() plan.Budget { return plan.NewBudget(m.schedule, m.opts.Plan) }

// requestedDelay returns the delay to ask of the host: the time of a whole drain, or Plan.Limit
// if that is less.
func (m *Manager) requestedDelay() time.Duration {
	total := m.budget().Total()
	if limit := m.opts.Plan.Limit; limit != 0 {
		return min(total, max(limit, 0))
	}
	return total
}

// shortensBucket reports whether some bucket gets less than its configured time if the host waits
// for limit.
func (m *Manager) shortensBucket(limit time.Duration) bool {
	return m.budget().Fit(limit, nil).Schedule.Total() < m.schedule.Total()
}

// logRequest logs the requested delay and its parts, once.
func (m *Manager) logRequest(ctx context.Context) {
	b, logger := m.budget(), klog.FromContext(ctx)
	if m.shortensBucket(m.requestedDelay()) {
		logger.Info("The limit of the shutdown options is too short for the schedule, some pods get less time", "limit", m.opts.Plan.Limit, "schedule", b.Schedule.Total())
	}
	logger.V(1).Info("Asking the host to delay its shutdown", "delay", m.requestedDelay(),
		"pods", b.Schedule.Total(), "prepare", b.Prepare, "hold", b.Hold, "publish", b.Publish, "besideBuckets", b.Overhead()-b.Publish,
		"containersFloor", b.Floor, "releaseMargin", b.Margin)
}
