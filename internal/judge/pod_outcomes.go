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
		isUnlisted := c.Outcome == lifecycle.OutcomeNotFound && c.ID == "" && t.usesLists() && !t.BegunByStart
		if isUnlisted && !p.hasEmptyList(t) {
			p.violation(t.Done.At, "%s is %s, but no list requested since is empty", c.Name, c.Outcome)
		}
		if t.usesLists() || t.names(c.ID) {
			p.requireEndProved(c.run(), c.Outcome, t.Done)
		}
	}
	for _, request := range p.kills {
		for _, c := range p.known {
			if request.mayMean(c) {
				p.requireEndProved(c, request.Result.Outcome, request.Returned)
			}
		}
	}
}

// hasEmptyList reports whether a list that a termination has requested and used was empty. A list that returned after
// Forget is not used.
func (p *podHistory) hasEmptyList(t *Termination) bool {
	return slices.ContainsFunc(p.lists, func(l *List) bool {
		isOfTermination := t.called().Before(l.Called) && l.Returned.Before(t.Done)
		return isOfTermination && !p.wasForgotten(t, l.Returned.At) && len(l.Running) == 0
	})
}

// requireEndProved records a violation if a call has returned, at a moment, an outcome that means that a run has ended,
// although no list had proved the end by then. A list proves it only if it was requested after the first call that stops the
// run or, if there is no such call, after the run was known.
func (p *podHistory) requireEndProved(run lifecycle.Container, outcome lifecycle.Outcome, returned Moment) {
	known := p.firstKnown(run)
	if !hasEnded(outcome) || returned.IsZero() || known.IsZero() || p.stopProvedEnd(run.ID, returned) {
		return
	}
	stopped := known.At
	isFirstStop := func(s *Stop) bool {
		// A run that was not found was not stopped: a StopContainer call with its ID was for another run.
		stopsRun := s.isStopPod() || s.ID == run.ID && outcome != lifecycle.OutcomeNotFound
		return stopsRun && !s.Called.At.Before(known.At) && s.Called.Before(returned)
	}
	if first := slices.IndexFunc(p.stops, isFirstStop); first >= 0 {
		stopped = p.stops[first].Called.At
	}
	if !slices.ContainsFunc(p.lists, func(l *List) bool { return l.Returned.Before(returned) && l.provesEnd(run, stopped) }) {
		p.violation(returned.At, "%q is %s, but no list requested after its stop lacks it", run.ID, outcome)
	}
}

// noRunningPodIsReportedEnded: a termination that uses lists reports its pod as ended only if no container is being started, and
// the newest list was requested after the last start and is empty.
func (p *podHistory) noRunningPodIsReportedEnded() {
	for _, t := range p.terminations {
		isJudged := !t.Done.IsZero() && t.usesLists() && !t.forgotten.By(t.Done.At)
		if !isJudged || len(notEnded(t.Result)) > 0 {
			continue
		}
		for _, s := range p.starts {
			if isStarting := s.Begun.Before(t.Done) && !s.Ended.By(t.Done.At); isStarting {
				p.violation(t.Done.At, "the pod is %s, but %s is being started", t.Result.Outcome(), s.Name)
			}
		}
		lists, change := p.newestLists(t.Done), p.lastChange(t)
		isNew := func(l *List) bool { return change.Before(l.Called) }
		if !t.BegunByStart && !slices.ContainsFunc(lists, isNew) {
			p.violation(t.Done.At, "the pod is %s, but no list was requested after %v", t.Result.Outcome(), p.sinceStart(change.At))
		}
		isEmpty := func(l *List) bool { return len(l.Running) == 0 }
		if len(lists) > 0 && !slices.ContainsFunc(lists, isEmpty) {
			p.violation(t.Done.At, "the pod is %s, but the runtime lists %s", t.Result.Outcome(), names(lists[0].Running))
		}
	}
}

// lastChange returns when the last start ended before a termination did, but at least when the termination began. Only a list
// that was requested later shows all that runs.
func (p *podHistory) lastChange(t *Termination) Moment {
	last := t.called()
	for _, s := range p.starts {
		if s.Begun.Before(t.Done) && s.Ended.At.Before(t.Done.At) && last.Before(s.Ended) {
			last = s.Ended
		}
	}
	return last
}

// killedIsNotGraceful: a run that the runtime has killed is not reported as Graceful, because an operator who reads that
// would not look for the cause.
func (p *podHistory) killedIsNotGraceful() {
	for _, t := range p.terminations {
		for _, run := range p.runs {
			result := t.resultOf(run.Container)
			isGraceful := result != nil && result.Outcome == lifecycle.OutcomeGraceful
			wasKilled := run.EndedBy == "KILL" && run.Exit.isBetween(t.returned(), t.Done)
			saidEnd := func(s *Stop) bool { return s.succeeded() && s.Returned.Before(run.Exit) } // the runtime was wrong: it killed the run later
			if isGraceful && wasKilled && !slices.ContainsFunc(p.stopsOf(run.Container), saidEnd) {
				p.violation(run.Exit.At, "%q", run.ID)
			}
		}
	}
}

// everyListedRunHasAResult: each run that a termination had to stop has a result of its own, even if it shares its ID
// with another run. Otherwise the caller does not learn whether the run has ended.
func (p *podHistory) everyListedRunHasAResult() {
	for _, d := range p.duties {
		if !d.Done.IsZero() && d.resultOf(d.run) == nil {
			p.violation(d.Done.At, "%q", d.run.ID)
		}
	}
}

// failuresAreReported: if a container was forced, is stuck or was left running, its result has an error that says why.
func (p *podHistory) failuresAreReported() {
	for _, c := range p.results() {
		needsError := c.Outcome == lifecycle.OutcomeForced || !hasEnded(c.Outcome)
		if needsError && c.Err == nil {
			p.violation(c.termination.Done.At, "%s(%s) is %s without an error", c.Name, c.ID, c.Outcome)
		}
	}
}

// failedStopsAreLogged: before a container is stopped again, the failure of the last stop is logged as an error: the line
// says why the pod takes long. If the test records no log, nothing is judged.
func (p *podHistory) failedStopsAreLogged() {
	for _, s := range p.stops {
		isFailure := !s.Returned.IsZero() && !s.succeeded() && !errors.Is(s.Err, context.Canceled)
		again := p.calledAgain(s)
		if len(p.logs) == 0 || !isFailure || again.IsZero() || p.changesNothing(s) {
			continue
		}
		isLine := func(line LogEntry) bool {
			return line.IsError && line.Before(again) && strings.Contains(line.Text, p.key) && strings.Contains(line.Text, s.ID)
		}
		if !slices.ContainsFunc(p.logs, isLine) {
			p.violation(again.At, "stop(%d) of %q failed, which was not logged", s.Seconds, s.ID)
		}
	}
}

// calledAgain returns when a container was stopped again after a stop had returned; zero: never, or at the very time of the
// return: that call may have been made before it.
func (p *podHistory) calledAgain(s *Stop) Moment {
	i := slices.IndexFunc(p.stops, func(again *Stop) bool { return again.ID == s.ID && s.Returned.Before(again.Called) })
	if i < 0 || p.stops[i].Called.At.Equal(s.Returned.At) {
		return Moment{}
	}
	return p.stops[i].Called
}

// changesNothing reports whether the failure of a stop changes nothing, because another stop of the same container succeeded
// while the failed call was in progress.
func (p *podHistory) changesNothing(failed *Stop) bool {
	return slices.ContainsFunc(p.stops, func(other *Stop) bool {
		isDuring := !other.Returned.At.Before(failed.Called.At) && other.Returned.Before(failed.Returned)
		return other.ID == failed.ID && other.succeeded() && isDuring
	})
}

// failedListsAreLogged: if a list of the pod fails, an error is logged, because a pod whose containers cannot be listed does
// not end. Any error line counts. If the test records no log, nothing is judged.
func (p *podHistory) failedListsAreLogged() {
	hasErrorLine := slices.ContainsFunc(p.logs, func(line LogEntry) bool { return line.IsError })
	if recordsLog := len(p.logs) > 0; !recordsLog || hasErrorLine {
		return
	}
	for _, l := range p.Record.lists {
		if l.Pod == p.key && l.Err != nil && !p.isExpected(l) {
			p.violation(l.Returned.At, "a list failed, and nothing was logged")
		}
	}
}

// isExpected reports whether the error of a list is no failure: Close has ended the list, or the runtime cannot list at all.
func (p *podHistory) isExpected(l *List) bool {
	isCancelled := errors.Is(l.Err, context.Canceled) || errors.Is(l.Err, lifecycle.CauseTerminatorClosed)
	return isCancelled && p.closedAt().Before(l.Returned) || errors.Is(l.Err, errors.ErrUnsupported)
}
