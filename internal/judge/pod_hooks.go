package judge

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// hookRunsOncePerRun: the preStop hook runs at most once in each run of a container. A second hook would, for instance, drain
// the same connections again. A hook has only the ID of its container, which may have been started again in between.
func (p *podHistory) hookRunsOncePerRun() {
	for i, h := range p.hooks {
		isRepeated := func(earlier *Hook) bool { return earlier.ID == h.ID && !p.mayBeNewRun(h.ID, earlier.Called, h.Called) }
		if first := slices.IndexFunc(p.hooks[:i], isRepeated); first >= 0 {
			p.violation(h.Called.At, "the hook of %q has run at %v", h.ID, p.sinceStart(p.hooks[first].Called.At))
		}
	}
}

// mayBeNewRun reports whether the run with an ID may have been replaced by another one between two moments, as far as the
// terminator can know.
func (p *podHistory) mayBeNewRun(id string, from, to Moment) bool {
	isEnd := func(s *Stop) bool {
		return s.stopsID(id) && s.succeeded() && !s.Returned.At.Before(from.At) && s.Returned.Before(to)
	}
	switch {
	case p.successProvesEnd(id) && slices.ContainsFunc(p.stops, isEnd):
	case p.forgottenAfter(from).Before(to): // the terminator does not know the first hook any more
	case p.isUnlistedOrReplaced(id, from, to), p.isUnnamed(id, from, to): // the first run had ended
	default:
		return false
	}
	return true
}

// isUnlistedOrReplaced reports whether a list that returned between two moments has no run with the ID, or another run with
// it than the first of these lists or than a list that was the newest one before (newestLists).
func (p *podHistory) isUnlistedOrReplaced(id string, from, to Moment) bool {
	var runs []lifecycle.Container // with the ID, in the lists between the moments
	for _, l := range p.lists {
		if l.Returned.At.Before(from.At) || !l.Returned.Before(to) {
			continue
		}
		listed := withID(l.Running, id)
		if len(listed) == 0 {
			return true
		}
		runs = append(runs, listed[0])
	}
	for _, l := range p.newestLists(from) {
		runs = append(runs, withID(l.Running, id)...)
	}
	isOther := func(c lifecycle.Container) bool { return !isSameRun(c, runs[0]) }
	return slices.ContainsFunc(runs, isOther)
}

// hookOfPreviousAgentIsNotRepeated: if each list or request that the terminator had received marks the container as
// PreStopDone, a previous agent has run its hook, and it does not run again.
func (p *podHistory) hookOfPreviousAgentIsNotRepeated() {
	for _, h := range p.hooks {
		runs := p.runsBefore(h.ID, h.Called)
		isUnmarked := func(c lifecycle.Container) bool { return !c.PreStopDone }
		if len(runs) > 0 && !slices.ContainsFunc(runs, isUnmarked) {
			p.violation(h.Called.At, "the hook of %q had run for a previous agent", h.ID)
		}
	}
}

// runsBefore returns the runs with an ID that the terminator had been told of before a moment, by lists or by requests. A
// run is returned once for each list or request that has it.
func (p *podHistory) runsBefore(id string, end Moment) (runs []lifecycle.Container) {
	add := func(known Moment, containers []lifecycle.Container) {
		if known.Before(end) {
			runs = append(runs, withID(containers, id)...)
		}
	}
	for _, l := range p.lists {
		add(l.Returned, l.Running)
	}
	for _, request := range p.stopRequests() {
		add(request.Called, request.Containers)
	}
	return runs
}

// hooksEndByTheDeadlineAndAtClose: a hook has returned, or its context has ended, when the stop of its container is due and
// when Close was called. A hook that runs longer, or begins later, takes the time of the stop or of the agent's exit.
func (p *podHistory) hooksEndByTheDeadlineAndAtClose() {
	for _, h := range p.hooks {
		if closed := p.closedAt(); !closed.IsZero() && !h.isOver(times.Later(closed.At, h.Called.At)) {
			p.violation(closed.At, "the hook of %q continues after Close", h.ID)
		}
		for _, d := range p.duties {
			due := d.due()
			endsBefore := d.Done.By(due)
			if h.isFor(d) && !endsBefore && !h.isOver(due) {
				p.violation(due, "the hook of %q, which began at %v, continues", h.ID, p.sinceStart(h.Called.At))
			}
		}
	}
}

// isFor reports whether a hook runs for a duty, so that its deadline applies: the hook has the ID of the run, and began when the
// termination had not ended and was not forgotten.
func (h *Hook) isFor(d *duty) bool {
	return h.ID == d.run.ID && !d.Done.By(h.Called.At) && !d.forgotten.Before(h.Called)
}

// isOver reports whether a hook has returned, or its context has ended, by a time.
func (h *Hook) isOver(end time.Time) bool { return h.Cancelled.By(end) || h.Returned.By(end) }

// hooksAreReportedAsTheyEnded: the outcome that a termination reports for a hook is what the hook did. Judged are only
// containers for whose ID exactly one hook ran, and that during the termination: several hooks mean several runs.
func (p *podHistory) hooksAreReportedAsTheyEnded() {
	for _, c := range p.results() {
		t := c.termination
		hooks := slices.DeleteFunc(slices.Clone(p.hooks), func(h *Hook) bool { return h.ID != c.ID })
		isJudged := len(hooks) == 1 && hooks[0].Called.isBetween(t.returned(), t.Done)
		if isJudged && !hooks[0].mayBeReportedAs(c.Hook.Outcome, t) {
			p.violation(t.Done.At, "the hook of %q is %s", c.ID, c.Hook.Outcome)
		}
	}
}

// mayBeReportedAs reports whether a termination may report an outcome for a hook that it has run. A hook that was cancelled,
// or that returned at its deadline, has not failed. A hook that returned within a second of its cancellation is not abandoned.
func (h *Hook) mayBeReportedAs(outcome lifecycle.HookOutcome, t *Termination) bool {
	hasReturned, wasCancelled := h.Returned.Before(t.Done), h.Cancelled.Before(h.Returned)
	switch outcome {
	case lifecycle.HookCompleted:
		return hasReturned && h.Err == nil
	case lifecycle.HookFailed:
		deadline := t.deadlineInForce(h.Returned.At) // zero: the termination began at that very time
		return hasReturned && h.Err != nil && !wasCancelled && (deadline.IsZero() || h.Returned.At.Before(deadline))
	case lifecycle.HookCut:
		return hasReturned && (h.Err != nil || h.IsSleep) // a sleep that ended because its container exited is cut without an error
	case lifecycle.HookAbandoned:
		return !h.Cancelled.IsZero() && !h.Returned.By(h.Cancelled.At.Add(abandonAfter-1)) // at exactly abandonAfter, both are right
	default: // a skipped hook has not run in this termination
		return true
	}
}
