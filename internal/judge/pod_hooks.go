package judge

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// hookRunsOncePerRun: the preStop hook runs at most once in each run of a container. A second one would drain twice what
// can be drained once. Another hook of the same ID needs a new run.
func (p *podHistory) hookRunsOncePerRun() {
	for i, h := range p.hooks {
		for _, earlier := range p.hooks[:i] {
			if earlier.ID == h.ID && !p.mayBeNewRun(h.ID, earlier.Called, h.Called) {
				p.violation(h.Called.At, "the hook of %q has run at %v", h.ID, p.since(earlier.Called.At))
				break
			}
		}
	}
}

// mayBeNewRun reports whether an ID may mean another run at the moment to than at the moment from, as far as the
// terminator can know. In between
//   - Forget was called for the pod,
//   - another run with the ID began,
//   - a stop of the ID succeeded, where that proves the end of a run (trustsStop),
//   - a caller named the running containers, and the ID was not among them, or
//   - a list had no run with the ID, or another one than before.
func (p *podHistory) mayBeNewRun(id string, from, to Moment) bool {
	isStart := func(run *Run) bool { return run.ID == id && from.Before(run.Start) && run.Start.Before(to) }
	isEnd := func(s *Stop) bool {
		return (s.ID == id || s.ID == "") && s.succeeded() && s.Returned.Before(to) && !s.Returned.At.Before(from.At)
	}
	return p.forgottenAt(from).Before(to) ||
		slices.ContainsFunc(p.runs, isStart) ||
		p.trustsStop(id) && slices.ContainsFunc(p.stops, isEnd) ||
		p.isUnnamed(id, from, to) || p.isUnlistedOrReplaced(id, from, to)
}

// isUnnamed reports whether a Terminate call that was in progress between two moments named the running containers,
// and the ID was not among them.
func (p *podHistory) isUnnamed(id string, from, to Moment) bool {
	return slices.ContainsFunc(p.terminations, func(t *Termination) bool {
		return slices.ContainsFunc(t.Requests, func(u *Request) bool {
			isBetween := from.Before(u.Returned) && u.Called.Before(to)
			return !u.UsesList && isBetween && !slices.ContainsFunc(u.Containers, func(c lifecycle.Container) bool { return c.ID == id })
		})
	})
}

// isUnlistedOrReplaced reports whether a list that returned between two moments has no run with the ID, or one that
// began at another time than that of an earlier list. The earlier list may be the last one before the first moment.
func (p *podHistory) isUnlistedOrReplaced(id string, from, to Moment) bool {
	var began []time.Time // of the run with the ID, for each list between the moments
	for _, l := range p.lists {
		if l.Returned.At.Before(from.At) || to.Before(l.Returned) {
			continue
		}
		i := slices.IndexFunc(l.Running, func(c lifecycle.Container) bool { return c.ID == id })
		if i < 0 {
			return true
		}
		if began = append(began, l.Running[i].Began); !began[0].Equal(l.Running[i].Began) {
			return true
		}
	}
	return len(began) > 0 && slices.ContainsFunc(p.visibleLists(from), func(l *List) bool {
		return slices.ContainsFunc(l.Running, func(c lifecycle.Container) bool { return c.ID == id && !c.Began.Equal(began[0]) })
	})
}

// hookOfPreviousAgentIsNotRepeated: if all runs that the terminator had been told of with an ID were marked
// PreStopDone, a previous agent has run the hook, and it does not run again.
func (p *podHistory) hookOfPreviousAgentIsNotRepeated() {
	for _, h := range p.hooks {
		runs := p.runsBefore(h.ID, h.Called)
		if len(runs) > 0 && !slices.ContainsFunc(runs, func(c lifecycle.Container) bool { return !c.PreStopDone }) {
			p.violation(h.Called.At, "the hook of %q had run for a previous agent", h.ID)
		}
	}
}

// runsBefore returns what lists and callers had said before a moment about the runs with an ID.
func (p *podHistory) runsBefore(id string, before Moment) (runs []lifecycle.Container) {
	add := func(told Moment, containers []lifecycle.Container) {
		for _, c := range containers {
			if c.ID == id && told.Before(before) {
				runs = append(runs, c)
			}
		}
	}
	for _, l := range p.lists {
		add(l.Returned, l.Running)
	}
	for _, t := range p.terminations {
		for _, u := range t.Requests {
			add(u.Called, u.Containers)
		}
	}
	for _, u := range p.kills {
		add(u.Called, u.Containers)
	}
	return runs
}

// hookUse is a hook that runs for a termination.
type hookUse struct {
	*Hook
	*Termination

	since Moment // when the termination first had to stop the run
}

// hookUses returns each hook with each termination that it may have run for: one that had to stop the hook's
// container, had not ended before the hook began, and whose pod was not forgotten. A hook of an ID that had several
// runs may be of any of them, and is left out.
func (p *podHistory) hookUses() (uses []hookUse) {
	for _, h := range p.hooks {
		for _, c := range p.known {
			if c.ID != h.ID || p.hasSeveralRuns(c.ID) {
				continue
			}
			for _, t := range p.terminations {
				since := p.includedAt(t, c)
				if !since.IsZero() && !t.Done.By(h.Called.At) && !p.isForgotten(t, h.Called) {
					uses = append(uses, hookUse{h, t, since})
				}
			}
		}
	}
	return uses
}

// isOver reports whether a hook has returned, or its context has ended, by a time.
func (h *Hook) isOver(by time.Time) bool { return h.Cancelled.By(by) || h.Returned.By(by) }

// startsLate reports whether a hook began at or after the deadline that was then in force.
func (h hookUse) startsLate() bool {
	deadline := h.deadlineBefore(h.Called.At)
	return h.since.At.Before(h.Called.At) && !deadline.IsZero() && !h.Called.At.Before(deadline)
}

// noHookStartsAfterTheDeadline: no hook starts at or after its container's deadline, because it has no time left.
func (p *podHistory) noHookStartsAfterTheDeadline() {
	for _, h := range p.hookUses() {
		if h.startsLate() {
			p.violation(h.Called.At, "the hook of %q, whose deadline was %v", h.ID, p.since(h.deadlineBefore(h.Called.At)))
		}
	}
}

// hooksEndByTheDeadline: a hook has returned by its container's deadline, or its context has ended. What runs longer
// takes the time of the stop. If the hook began, or its container was first listed, after that deadline, the hook
// must be over at once. A hook that began too late breaks another rule, and is not judged here.
func (p *podHistory) hooksEndByTheDeadline() {
	for _, h := range p.hookUses() {
		end := times.Later(times.Later(h.lastDeadline(), h.Called.At), h.since.At)
		if !h.startsLate() && !h.Done.By(end) && !h.isOver(end) {
			p.violation(end, "the hook of %q, which began at %v, continues", h.ID, p.since(h.Called.At))
		}
	}
}

// hooksEndAtClose: Close ends the context of each hook, so that the agent can exit.
func (p *podHistory) hooksEndAtClose() {
	closed := p.closedAt()
	for _, h := range p.hooks {
		if !closed.IsZero() && !h.isOver(times.Later(closed.At, h.Called.At)) {
			p.violation(closed.At, "the hook of %q continues after Close", h.ID)
		}
	}
}

// hooksAreReportedAsTheyEnded: the result of a hook is what the hook did. One that was cancelled, or has returned at
// its deadline, has not failed. One that has returned is not abandoned, unless that took a second after its
// cancellation. A result is judged if exactly one hook ran for the ID, during the termination.
func (p *podHistory) hooksAreReportedAsTheyEnded() {
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			hooks := slices.DeleteFunc(slices.Clone(p.hooks), func(h *Hook) bool { return h.ID != c.ID })
			if len(hooks) != 1 || !t.startedAt().Before(hooks[0].Called) || t.Done.Before(hooks[0].Called) {
				continue // with several hooks, another run had this ID
			}
			h := hooks[0]
			hasReturned, wasCancelled := h.Returned.Before(t.Done), h.Cancelled.Before(h.Returned)
			isTrue := true
			switch c.Hook.Outcome { //nolint:exhaustive // a skipped hook has not run in this termination
			case lifecycle.HookCompleted:
				isTrue = hasReturned && h.Err == nil
			case lifecycle.HookFailed:
				isTrue = hasReturned && h.Err != nil && !wasCancelled && h.Returned.At.Before(t.lastDeadline())
			case lifecycle.HookCut:
				isTrue = hasReturned && (h.Err != nil || h.IsSleep) // a sleep that ended because its container exited is cut without an error
			case lifecycle.HookAbandoned:
				isTrue = !h.Cancelled.IsZero() && !h.Returned.By(h.Cancelled.At.Add(abandonAfter-1)) // at exactly abandonAfter, both are right
			}
			if !isTrue {
				p.violation(t.Done.At, "the hook of %q is %s", c.ID, c.Hook.Outcome)
			}
		}
	}
}
