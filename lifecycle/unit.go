package lifecycle

import "time"

// unit are containers that stop together: their hooks run side by side, and one StopPod
// follows them, or the deadline. The run whose hook is the last to end makes the call.
type unit struct {
	members []*run
	hooks   int  // of members that may be under way
	lead    *run // that has called StopPod; nil: none has
	done    bool
	outcome Outcome
	err     error
}

// newUnit returns a unit if containers stop together, else nil.
func (s *settings) newUnit() *unit {
	if s.Pods == nil {
		return nil
	}
	return &unit{}
}

// with returns the runs that are stopped with one: those of its unit, or itself.
func (u *unit) with(r *run) []*run {
	if u == nil {
		return []*run{r}
	}
	return u.members
}

// isLed reports whether StopPod was called for the unit.
func (u *unit) isLed() bool { return u.lead != nil }

// join adds a run.
func (u *unit) join(r *run) {
	u.members = append(u.members, r)
	u.hooks++
}

// hookEnded says that the hook of a member has ended, or that there is nothing to stop.
func (u *unit) hookEnded() {
	if u.hooks--; u.hooks == 0 {
		u.wake()
	}
}

// wake wakes all members.
func (u *unit) wake() {
	for _, r := range u.members {
		r.wakeLocked()
	}
}

// stopLocked stops the unit once, for all its members, and returns the outcome.
func (u *unit) stopLocked(r *run) (Outcome, error) {
	r.result.Phase = PhaseWaiting
	start := time.Now()
	u.hookEnded()
	live := r.live // in a former life of the pod a stop may be under way
	isFree := func() bool { return u.lead == nil && live.stopping == nil }
	r.waitLocked(func() bool { return u.done || u.hooks == 0 && isFree() || r.isClosed() }, func() time.Time {
		if !isFree() {
			return time.Time{}
		}
		return r.deadline.at()
	}, nil)
	switch {
	case r.isClosed() && !u.done:
		return LeftRunning, nil
	case u.lead == nil:
		u.lead, live.stopping, r.result.Waited = r, u, time.Since(start)
		for _, member := range u.members {
			if member.result.Phase == PhaseWaiting {
				member.result.Phase = PhaseStopping
			}
		}
		u.outcome, u.err = (&stop{run: r, firstCallAt: time.Now(), failed: true}).untilEndedLocked()
		u.done, live.stopping = true, nil
		for _, a := range live.all() {
			a.wakeLocked()
		}
	default:
		r.result.Phase = PhaseStopping
		r.waitLocked(func() bool { return u.done }, nil, nil)
		r.result.Stopping = u.lead.result.Stopping
		r.flags.renew = u.lead.flags.renew
		r.result.Waited = time.Since(start) - r.result.Stopping
	}
	return u.outcome, u.err
}
