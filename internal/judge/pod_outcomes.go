package judge

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// noRunningContainerIsReportedEnded: a termination or KillContainer reports a container as ended only if its end is proved,
// because its volumes and addresses may then go to other pods.
func (p *podHistory) noRunningContainerIsReportedEnded() {
	for _, c := range p.results() {
		t := c.termination
		wasNeverListed := c.Outcome == lifecycle.OutcomeNotFound && c.ID == ""
		mustHaveListed := t.usesLists() && !t.BegunByStart
		if wasNeverListed && mustHaveListed && !p.hasEmptyList(t) {
			p.addViolation(t.Done.At, "%s is %s, but no list requested since is empty", c.Name, c.Outcome)
		}
		if t.usesLists() || t.names(c.ID) {
			p.requireEndProved(c.run(), c.Outcome, t.Done)
		}
	}
	for _, request := range p.killContainerCalls {
		for _, run := range p.knownRuns {
			if request.mayTarget(run) {
				p.requireEndProved(run, request.Result.Outcome, request.Returned)
			}
		}
	}
}

// hasEmptyList reports whether a termination had the pod's containers listed, and the list was empty. A list that returned
// after Forget is not used.
func (p *podHistory) hasEmptyList(t *Termination) bool {
	return slices.ContainsFunc(p.lists, func(l *List) bool {
		isOfTermination := t.requested().Before(l.Called) && l.Returned.Before(t.Done)
		return isOfTermination && !p.wasForgotten(t, l.Returned.At) && len(l.Running) == 0
	})
}

// requireEndProved adds a violation if a call returned an outcome that means that a container has ended, before anything had
// proved the end. Either of these is a proof:
//
//   - a stop call that proves it (endProvedByStop);
//   - a list without the container that was requested after the first stop call for it or, if there was no stop call, after the
//     container was known.
func (p *podHistory) requireEndProved(run lifecycle.Container, outcome lifecycle.Outcome, returned Moment) {
	known := p.firstKnownAt(run)
	isJudged := hasEnded(outcome) && !returned.IsZero() && !known.IsZero()
	if !isJudged || p.endProvedByStop(run.ID, returned) {
		return
	}
	isStop := func(s *StopCall) bool {
		// A run that is reported as not found was not stopped: a StopContainer call with this ID was for another run of the
		// container, because a runtime may start a container again under its ID.
		stopsRun := s.isStopPod() || s.ID == run.ID && outcome != lifecycle.OutcomeNotFound
		return stopsRun && !s.Called.At.Before(known.At) && s.Called.Before(returned)
	}
	listsCountFrom := known.At
	if first := slices.IndexFunc(p.stopCalls, isStop); first >= 0 {
		listsCountFrom = p.stopCalls[first].Called.At
	}
	isProof := func(l *List) bool { return l.Returned.Before(returned) && l.provesEnd(run, listsCountFrom) }
	if !slices.ContainsFunc(p.lists, isProof) {
		p.addViolation(returned.At, "%q is %s, but no list requested after its stop lacks it", run.ID, outcome)
	}
}

// noRunningPodIsReportedEnded: a termination that uses lists reports its pod as ended only if no container is being started, and
// the newest list was requested after the last start and is empty.
func (p *podHistory) noRunningPodIsReportedEnded() {
	for _, t := range p.terminations {
		saysEnded := !t.Done.IsZero() && len(notEnded(t.Result)) == 0
		isJudged := t.usesLists() && !t.forgottenAt.HappenedBy(t.Done.At)
		if !saysEnded || !isJudged {
			continue
		}
		for _, s := range p.starts {
			if isStarting := s.Begun.Before(t.Done) && !s.Ended.HappenedBy(t.Done.At); isStarting {
				p.addViolation(t.Done.At, "the pod is %s, but %s is being started", t.Result.Outcome(), s.Name)
			}
		}
		lists, lastStart := p.possiblyNewestLists(t.Done), p.lastStartOrBeginning(t)
		isNew := func(l *List) bool { return lastStart.Before(l.Called) }
		if !t.BegunByStart && !slices.ContainsFunc(lists, isNew) {
			p.addViolation(t.Done.At, "the pod is %s, but no list was requested after %v", t.Result.Outcome(), p.sinceStart(lastStart.At))
		}
		isEmpty := func(l *List) bool { return len(l.Running) == 0 }
		if len(lists) > 0 && !slices.ContainsFunc(lists, isEmpty) {
			p.addViolation(t.Done.At, "the pod is %s, but the runtime lists %s", t.Result.Outcome(), names(lists[0].Running))
		}
	}
}

// lastStartOrBeginning returns when the last start ended during a termination; if there was none, when the termination was
// requested. Only a list that was requested later shows all containers that run.
func (p *podHistory) lastStartOrBeginning(t *Termination) Moment {
	last := t.requested()
	for _, s := range p.starts {
		endsBefore := s.Begun.Before(t.Done) && s.Ended.At.Before(t.Done.At)
		if endsBefore && last.Before(s.Ended) {
			last = s.Ended
		}
	}
	return last
}

// killedIsNotGraceful: a container that the runtime has killed is not reported as Graceful, because an operator who reads that
// would not look for the cause.
func (p *podHistory) killedIsNotGraceful() {
	for _, t := range p.terminations {
		for _, run := range p.runs {
			result := t.resultOf(run.Container)
			isGraceful := result != nil && result.Outcome == lifecycle.OutcomeGraceful
			wasKilled := run.EndedBy == "KILL" && run.Exit.isBetween(t.certainlyBegun(), t.Done)
			saidEnd := func(s *StopCall) bool { return s.succeeded() && s.Returned.Before(run.Exit) }
			runtimeLied := slices.ContainsFunc(p.stopCallsFor(run.Container), saidEnd) // so the terminator cannot know better
			if isGraceful && wasKilled && !runtimeLied {
				p.addViolation(run.Exit.At, "%q", run.ID)
			}
		}
	}
}

// everyListedRunHasAResult: each run of a container that a termination had to stop has a result of its own, even if it shares
// its ID with another run. Otherwise the caller does not learn whether the run has ended.
func (p *podHistory) everyListedRunHasAResult() {
	for _, r := range p.runsToStop {
		if !r.Done.IsZero() && r.resultOf(r.run) == nil {
			p.addViolation(r.Done.At, "%q", r.run.ID)
		}
	}
}

// failuresAreReported: if a container was forced, is stuck or was left running, its result has an error that says why.
func (p *podHistory) failuresAreReported() {
	for _, c := range p.results() {
		needsError := c.Outcome == lifecycle.OutcomeForced || !hasEnded(c.Outcome)
		if needsError && c.Err == nil {
			p.addViolation(c.termination.Done.At, "%s(%s) is %s without an error", c.Name, c.ID, c.Outcome)
		}
	}
}

// failedStopsAreLogged: before a container is stopped again, the failure of the last stop call is logged as an error, so that
// an operator sees why the pod takes long. If the test records no log, nothing is judged.
func (p *podHistory) failedStopsAreLogged() {
	recordsLog := len(p.logs) > 0
	for _, s := range p.stopCalls {
		hasFailed := !s.Returned.IsZero() && !s.succeeded() && !errors.Is(s.Err, context.Canceled)
		again := p.stoppedAgainAt(s)
		mustBeLogged := hasFailed && !again.IsZero() && !p.hasSucceededMeanwhile(s)
		if !recordsLog || !mustBeLogged {
			continue
		}
		isLine := func(line LogEntry) bool {
			return line.IsError && line.Before(again) && strings.Contains(line.Text, p.key) && strings.Contains(line.Text, s.ID)
		}
		if !slices.ContainsFunc(p.logs, isLine) {
			p.addViolation(again.At, "stop(%d) of %q failed, which was not logged", s.Seconds, s.ID)
		}
	}
}

// stoppedAgainAt returns when the next stop call for a container was made, after a call had returned; zero: never, or in the
// very moment of the return, because the terminator may have made that call without knowing the answer.
func (p *podHistory) stoppedAgainAt(s *StopCall) Moment {
	isNext := func(other *StopCall) bool { return other.ID == s.ID && s.Returned.Before(other.Called) }
	i := slices.IndexFunc(p.stopCalls, isNext)
	if i < 0 || p.stopCalls[i].Called.At.Equal(s.Returned.At) {
		return Moment{}
	}
	return p.stopCalls[i].Called
}

// hasSucceededMeanwhile reports whether another stop call for the same container succeeded while a failed one was in progress.
func (p *podHistory) hasSucceededMeanwhile(failed *StopCall) bool {
	return slices.ContainsFunc(p.stopCalls, func(other *StopCall) bool {
		isDuring := !other.Returned.At.Before(failed.Called.At) && other.Returned.Before(failed.Returned)
		return other.ID == failed.ID && other.succeeded() && isDuring
	})
}

// failedListsAreLogged: if the runtime fails to list the pod's containers, an error is logged, because the pod does not end
// until a list succeeds. Any error line counts. If the test records no log, nothing is judged.
func (p *podHistory) failedListsAreLogged() {
	recordsLog := len(p.logs) > 0
	hasErrorLine := slices.ContainsFunc(p.logs, func(line LogEntry) bool { return line.IsError })
	if !recordsLog || hasErrorLine {
		return
	}
	for _, l := range p.Record.lists {
		if l.Pod == p.key && l.Err != nil && !p.isNoFailure(l) {
			p.addViolation(l.Returned.At, "a list failed, and nothing was logged")
		}
	}
}

// isNoFailure reports whether the error of a list is no failure: Close has ended the list, or the runtime cannot list at all.
func (p *podHistory) isNoFailure(l *List) bool {
	isCancelled := errors.Is(l.Err, context.Canceled) || errors.Is(l.Err, lifecycle.CauseTerminatorClosed)
	return isCancelled && p.closedAt().Before(l.Returned) || errors.Is(l.Err, errors.ErrUnsupported)
}
