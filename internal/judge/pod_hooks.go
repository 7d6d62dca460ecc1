package judge

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// hookRunsOncePerRun: the preStop hook of a container runs once, and again only if the container may have been started again.
// Otherwise a second hook would, for instance, drain the same connections again.
func (p *podHistory) hookRunsOncePerRun() {
	for i, h := range p.hooks {
		isSameHook := func(earlier *Hook) bool {
			return earlier.ID == h.ID && !p.mayHaveRestarted(h.ID, earlier.Called, h.Called)
		}
		if first := slices.IndexFunc(p.hooks[:i], isSameHook); first >= 0 {
			p.addViolation(h.Called.At, "the hook of %q has run at %v", h.ID, p.sinceStart(p.hooks[first].Called.At))
		}
	}
}

// mayHaveRestarted reports whether the terminator may assume that the container with an ID has ended between two moments, so
// that the ID is of a new run since.
func (p *podHistory) mayHaveRestarted(id string, from, to Moment) bool {
	isSuccess := func(s *StopCall) bool {
		return s.stopsContainer(id) && s.succeeded() && !s.Returned.At.Before(from.At) && s.Returned.Before(to)
	}
	wasStopped := p.successProvesEnd(id) && slices.ContainsFunc(p.stopCalls, isSuccess)
	wasForgotten := p.firstForgetAfter(from).Before(to) // the terminator knows nothing of what was before
	return wasStopped || wasForgotten || p.isMissingOrReplacedInList(id, from, to) || p.wasLeftOut(id, from, to)
}

// isMissingOrReplacedInList reports whether the lists that the terminator got between two moments show that the run with an ID
// has ended: one of them lacks the ID, or they have several runs with it. The newest list before counts for several runs, too.
func (p *podHistory) isMissingOrReplacedInList(id string, from, to Moment) bool {
	var runs []lifecycle.Container // with the ID, in these lists
	for _, l := range p.lists {
		if isBetween := !l.Returned.At.Before(from.At) && l.Returned.Before(to); !isBetween {
			continue
		}
		listed := withID(l.Running, id)
		if len(listed) == 0 {
			return true
		}
		runs = append(runs, listed[0])
	}
	for _, l := range p.possiblyNewestLists(from) {
		runs = append(runs, withID(l.Running, id)...)
	}
	isOther := func(run lifecycle.Container) bool { return !isSameRun(run, runs[0]) }
	return slices.ContainsFunc(runs, isOther)
}

// hookOfPreviousAgentIsNotRepeated: a hook that a previous agent has run does not run again. It has, if all lists and requests
// that the terminator had received before say PreStopDone of the container.
func (p *podHistory) hookOfPreviousAgentIsNotRepeated() {
	for _, h := range p.hooks {
		mentions := p.mentionsBefore(h.ID, h.Called)
		isUnmarked := func(c lifecycle.Container) bool { return !c.PreStopDone }
		if len(mentions) > 0 && !slices.ContainsFunc(mentions, isUnmarked) {
			p.addViolation(h.Called.At, "the hook of %q had run for a previous agent", h.ID)
		}
	}
}

// mentionsBefore returns what the lists and requests that the terminator had received before a moment say about the container
// with an ID, one element for each of them.
func (p *podHistory) mentionsBefore(id string, end Moment) (mentions []lifecycle.Container) {
	add := func(received Moment, containers []lifecycle.Container) {
		if received.Before(end) {
			mentions = append(mentions, withID(containers, id)...)
		}
	}
	for _, l := range p.lists {
		add(l.Returned, l.Running)
	}
	for _, request := range p.stopRequests() {
		add(request.Called, request.Containers)
	}
	return mentions
}

// hooksEndByTheDeadlineAndAtClose: when the stop of a container is due, and when Close is called, the container's hook has
// returned, or its context has ended. A hook that runs longer would delay the stop, or the agent's exit.
func (p *podHistory) hooksEndByTheDeadlineAndAtClose() {
	for _, h := range p.hooks {
		if closed := p.closedAt(); !closed.IsZero() && !h.isOver(times.Later(closed.At, h.Called.At)) {
			p.addViolation(closed.At, "the hook of %q continues after Close", h.ID)
		}
		for _, r := range p.runsToStop {
			due := r.stopDue()
			isTerminationOver := r.Done.HappenedBy(due)
			if h.mustEndFor(r) && !isTerminationOver && !h.isOver(due) {
				p.addViolation(due, "the hook of %q, which began at %v, continues", h.ID, p.sinceStart(h.Called.At))
			}
		}
	}
}

// mustEndFor reports whether the deadline of a termination that has to stop a container applies to the hook: it is the hook of
// that container, and began before the termination had ended or was forgotten.
func (h *Hook) mustEndFor(r *runToStop) bool {
	return h.ID == r.run.ID && !r.Done.HappenedBy(h.Called.At) && !r.forgottenAt.Before(h.Called)
}

// isOver reports whether a hook has returned, or its context has ended, by a time.
func (h *Hook) isOver(end time.Time) bool {
	return h.Cancelled.HappenedBy(end) || h.Returned.HappenedBy(end)
}

// hooksAreReportedAsTheyEnded: the outcome that a termination reports for a hook is what the hook did. If several hooks ran
// for a container's ID, it is not known which of them the outcome is about, so only a container with a single hook is judged.
func (p *podHistory) hooksAreReportedAsTheyEnded() {
	for _, c := range p.results() {
		t := c.termination
		hooks := slices.DeleteFunc(slices.Clone(p.hooks), func(h *Hook) bool { return h.ID != c.ID })
		isJudged := len(hooks) == 1 && hooks[0].Called.isBetween(t.certainlyBegun(), t.Done)
		if isJudged && !hooks[0].mayBeReportedAs(c.Hook.Outcome, t) {
			p.addViolation(t.Done.At, "the hook of %q is %s", c.ID, c.Hook.Outcome)
		}
	}
}

// mayBeReportedAs reports whether an outcome is right for the hook, which termination t has run. A hook that was cancelled, or
// that returned at its deadline, has not failed.
func (h *Hook) mayBeReportedAs(outcome lifecycle.HookOutcome, t *Termination) bool {
	hasReturned, wasCancelled := h.Returned.Before(t.Done), h.Cancelled.Before(h.Returned)
	switch outcome {
	case lifecycle.HookCompleted:
		return hasReturned && h.Err == nil
	case lifecycle.HookFailed:
		deadline := t.deadlineInForceBefore(h.Returned.At) // zero: the termination began at that very time
		wasInTime := deadline.IsZero() || h.Returned.At.Before(deadline)
		return hasReturned && h.Err != nil && !wasCancelled && wasInTime
	case lifecycle.HookCut:
		return hasReturned && (h.Err != nil || h.IsSleep) // a sleep that ended because its container exited is cut without an error
	case lifecycle.HookAbandoned:
		returnedSoon := h.Returned.HappenedBy(h.Cancelled.At.Add(abandonAfter - 1)) // at exactly abandonAfter, both outcomes are right
		return !h.Cancelled.IsZero() && !returnedSoon
	default: // a skipped hook has not run in this termination
		return true
	}
}
