package judge

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// hookRunsOncePerRun: the preStop hook runs at most once in each run of a container. A second hook would, for instance,
// drain the same connections again. A hook has the ID of its container: a second hook with the same ID is right only if
// the container may have been started again in between (mayBeNewRun).
func (p *podHistory) hookRunsOncePerRun() {
	for i, h := range p.hooks {
		for _, earlier := range p.hooks[:i] {
			if earlier.ID == h.ID && !p.mayBeNewRun(h.ID, earlier.Called, h.Called) {
				p.violation(h.Called.At, "the hook of %q has run at %v", h.ID, p.sinceStart(earlier.Called.At))
				break
			}
		}
	}
}

// mayBeNewRun reports whether the run with an ID may have been replaced by another one between two moments, as far as the
// terminator can know. That is so if in between
//   - Forget was called for the pod,
//   - another run with the ID began,
//   - a stop of the ID succeeded, where that proves the end of a run (successProvesEnd),
//   - a caller named the running containers, and the ID was not among them, or
//   - a list had no run with the ID, or another one than before.
func (p *podHistory) mayBeNewRun(id string, from, to Moment) bool {
	isStart := func(run *Run) bool { return run.ID == id && from.Before(run.Start) && run.Start.Before(to) }
	isEnd := func(s *Stop) bool {
		return (s.ID == id || s.ID == "") && s.succeeded() && s.Returned.Before(to) && !s.Returned.At.Before(from.At)
	}
	isForgotten := p.forgottenAt(from).Before(to)
	hasStarted := slices.ContainsFunc(p.runs, isStart)
	hasEnded := p.successProvesEnd(id) && slices.ContainsFunc(p.stops, isEnd)
	return isForgotten || hasStarted || hasEnded || p.isUnnamed(id, from, to) || p.isUnlistedOrReplaced(id, from, to)
}

// isUnnamed reports whether a Terminate call that was in progress between two moments named the running containers,
// and the ID was not among them.
func (p *podHistory) isUnnamed(id string, from, to Moment) bool {
	return slices.ContainsFunc(p.terminations, func(t *Termination) bool {
		return slices.ContainsFunc(t.Requests, func(request *Request) bool {
			isBetween, namesContainers := from.Before(request.Returned) && request.Called.Before(to), !request.ListsContainers
			return isBetween && namesContainers && len(withID(request.Containers, id)) == 0
		})
	})
}

// isUnlistedOrReplaced reports whether a list that returned between two moments has no run with the ID, or another run
// with it than an earlier list: one that began at another time. The earlier list is one of the lists between the moments,
// or one that a decision at the first moment may have used (visibleLists).
func (p *podHistory) isUnlistedOrReplaced(id string, from, to Moment) bool {
	var between []lifecycle.Container // the run with the ID in each list between the moments
	for _, l := range p.lists {
		if isBetween := !l.Returned.At.Before(from.At) && !to.Before(l.Returned); !isBetween {
			continue
		}
		runs := withID(l.Running, id)
		if len(runs) == 0 {
			return true
		}
		between = append(between, runs[0])
	}
	if len(between) == 0 {
		return false
	}
	isOther := func(c lifecycle.Container) bool { return !isSameRun(c, between[0]) }
	hasOther := func(l *List) bool { return slices.ContainsFunc(withID(l.Running, id), isOther) }
	return slices.ContainsFunc(between, isOther) || slices.ContainsFunc(p.visibleLists(from), hasOther)
}

// hookOfPreviousAgentIsNotRepeated: if each list or request that the terminator had received marks the container as
// PreStopDone, a previous agent has run its hook, and it does not run again.
func (p *podHistory) hookOfPreviousAgentIsNotRepeated() {
	for _, h := range p.hooks {
		runs := p.runsBefore(h.ID, h.Called)
		hookMayRun := len(runs) == 0 || slices.ContainsFunc(runs, func(c lifecycle.Container) bool { return !c.PreStopDone })
		if !hookMayRun {
			p.violation(h.Called.At, "the hook of %q had run for a previous agent", h.ID)
		}
	}
}

// runsBefore returns the runs with an ID that the terminator had been told of before a moment, by lists or by requests. A
// run is returned once for each list or request that has it.
func (p *podHistory) runsBefore(id string, before Moment) (runs []lifecycle.Container) {
	add := func(knownAt Moment, containers []lifecycle.Container) {
		if knownAt.Before(before) {
			runs = append(runs, withID(containers, id)...)
		}
	}
	for _, l := range p.lists {
		add(l.Returned, l.Running)
	}
	for _, t := range p.terminations {
		for _, request := range t.Requests {
			add(request.Called, request.Containers)
		}
	}
	for _, request := range p.kills {
		add(request.Called, request.Containers)
	}
	return runs
}

// hooksEndByTheDeadlineAndAtClose: a hook has returned, or its context has ended, by its container's deadline and when Close
// was called. A hook that runs longer, or begins later, takes the time of the stop or of the agent's exit. If the container
// was first listed after the deadline, it has no time for a hook.
//
// A hook is held to the deadline of each termination that it may run for: one that had to stop the hook's container, had
// not ended before the hook began, and whose pod was not forgotten. If several runs had its ID, the hook may be that of any
// of them, and is held to no deadline.
func (p *podHistory) hooksEndByTheDeadlineAndAtClose() {
	for _, h := range p.hooks {
		if closed := p.closedAt(); !closed.IsZero() && !h.isOver(times.Later(closed.At, h.Called.At)) {
			p.violation(closed.At, "the hook of %q continues after Close", h.ID)
		}
		if runs := withID(p.known, h.ID); len(runs) == 1 {
			p.requireOverByDeadline(h, runs[0])
		}
	}
}

// requireOverByDeadline looks at each termination for which the hook h may run. It records a violation if the hook is not
// over by the termination's deadline or, if the container c became known only after that, when it became known.
func (p *podHistory) requireOverByDeadline(h *Hook, c lifecycle.Container) {
	for _, t := range p.terminations {
		since := p.mustStopSince(t, c)
		mayRunFor := !since.IsZero() && !t.Done.By(h.Called.At) && !p.isForgotten(t, h.Called)
		end := times.Later(t.lastDeadline(), since.At)
		if mayRunFor && !t.Done.By(end) && !h.isOver(end) {
			p.violation(end, "the hook of %q, which began at %v, continues", h.ID, p.sinceStart(h.Called.At))
		}
	}
}

// isOver reports whether a hook has returned, or its context has ended, by a time.
func (h *Hook) isOver(by time.Time) bool { return h.Cancelled.By(by) || h.Returned.By(by) }

// hooksAreReportedAsTheyEnded: the outcome that a termination reports for a hook is what the hook did (mayBe). Judged are
// only containers for whose ID exactly one hook ran, and that during the termination. Several hooks mean that another run
// had the ID.
func (p *podHistory) hooksAreReportedAsTheyEnded() {
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			hooks := slices.DeleteFunc(slices.Clone(p.hooks), func(h *Hook) bool { return h.ID != c.ID })
			if len(hooks) != 1 || !t.startedBy().Before(hooks[0].Called) || t.Done.Before(hooks[0].Called) {
				continue
			}
			if !hooks[0].mayBe(c.Hook.Outcome, t) {
				p.violation(t.Done.At, "the hook of %q is %s", c.ID, c.Hook.Outcome)
			}
		}
	}
}

// mayBe reports whether a termination may report an outcome for a hook that it has run. A hook that was cancelled, or that
// returned at its deadline, has not failed. A hook that returned within a second of its cancellation is not abandoned.
func (h *Hook) mayBe(outcome lifecycle.HookOutcome, t *Termination) bool {
	hasReturned, wasCancelled := h.Returned.Before(t.Done), h.Cancelled.Before(h.Returned)
	switch outcome {
	case lifecycle.HookCompleted:
		return hasReturned && h.Err == nil
	case lifecycle.HookFailed:
		deadline := t.Readings[0].Deadline
		for _, r := range t.Readings {
			if r.Called.Before(h.Returned) { // later ones have a deadline that the hook did not have
				deadline = times.Earlier(deadline, r.Deadline)
			}
		}
		return hasReturned && h.Err != nil && !wasCancelled && h.Returned.At.Before(deadline)
	case lifecycle.HookCut:
		return hasReturned && (h.Err != nil || h.IsSleep) // a sleep that ended because its container exited is cut without an error
	case lifecycle.HookAbandoned:
		return !h.Cancelled.IsZero() && !h.Returned.By(h.Cancelled.At.Add(abandonAfter-1)) // at exactly abandonAfter, both are right
	default: // a skipped hook has not run in this termination
		return true
	}
}
