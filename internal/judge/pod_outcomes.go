package judge

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// noRunningContainerIsReportedEnded: a termination or KillContainer reports a container as ended only if its end is proved,
// because its volumes and addresses may then go to other pods. The proof is one of these:
//   - a list that was requested after the first call that stops the run, and lacks it,
//   - a list that has a later run with the same ID,
//   - an empty list, if the result is "not found" and has no ID,
//   - the success of StopContainer, where nothing is listed.
func (p *podHistory) noRunningContainerIsReportedEnded() {
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			needsEmptyList := c.Outcome == lifecycle.OutcomeNotFound && c.ID == "" && t.usesList() && !t.IsForLateStart
			if needsEmptyList && !p.hasEmptyList(t) {
				p.violation(t.Done.At, "%s is %s, but no list requested since is empty", c.Name, c.Outcome)
			}
			if t.usesList() || t.namesID(c.ID) {
				p.requireEndProved(lifecycle.Container{ID: c.ID, Began: c.Began}, c.Outcome, t.Done)
			}
		}
	}
	for _, request := range p.kills {
		for _, c := range p.known {
			hasListed, isOnlyRun := len(p.visibleLists(request.Returned)) > 0, !p.hasSeveralRuns(c.ID)
			if request.matches(c) && hasListed && isOnlyRun {
				p.requireEndProved(c, request.Result.Outcome, request.Returned)
			}
		}
	}
}

// requireEndProved records a violation if a call has returned, at the moment by, an outcome that means that a run has ended,
// although no list had proved the end by then. A list proves it only if it was requested after the first call that stops the
// run, or, if there is no such call, after the run was known.
func (p *podHistory) requireEndProved(run lifecycle.Container, outcome lifecycle.Outcome, by Moment) {
	known := p.firstKnown(run)
	if !hasEnded(outcome) || by.IsZero() || known.IsZero() || p.stopProvedEnd(run.ID, by) {
		return
	}
	firstStop := slices.IndexFunc(p.stops, func(s *Stop) bool {
		isDuring := !s.Called.At.Before(known.At) && s.Called.Before(by)
		stopsRun := s.ID == run.ID && outcome != lifecycle.OutcomeNotFound // calls with the ID of a run that was not found do not count
		return isDuring && (stopsRun || s.ID == "")
	})
	since := known.At
	if firstStop >= 0 {
		since = p.stops[firstStop].Called.At
	}
	if !slices.ContainsFunc(p.lists, func(l *List) bool { return l.Returned.Before(by) && l.provesEnd(run, since) }) {
		p.violation(by.At, "%q is %s, but no list requested after its stop lacks it", run.ID, outcome)
	}
}

// hasEmptyList reports whether a list that a termination has requested and used was empty. A list that returned after
// Forget is not used.
func (p *podHistory) hasEmptyList(t *Termination) bool {
	return slices.ContainsFunc(p.lists, func(l *List) bool {
		isOfTermination := t.startedAt().Before(l.Called) && l.Returned.Before(t.Done)
		return isOfTermination && !p.wasForgottenBefore(t, l.Returned.At) && len(l.Running) == 0
	})
}

// noRunningPodIsReportedEnded: a pod is reported as ended only if
//   - no container is being started whose start began before the termination,
//   - a list was requested after the termination began and after the last start ended (unless the termination is that
//     of a late start),
//   - the last list has only containers whose end a successful stop proves.
//
// Not judged are terminations that do not list, that have reported a container that has not ended, or whose pod was
// forgotten before they ended.
func (p *podHistory) noRunningPodIsReportedEnded() {
	for _, t := range p.terminations {
		forgotten := p.forgottenAt(t.startedAt())
		isForgotten := !forgotten.IsZero() && !forgotten.At.After(t.Done.At)
		if t.Done.IsZero() || isForgotten || !t.usesList() || t.leavesContainers() {
			continue
		}
		// No container may be in the middle of its start.
		for _, s := range p.starts {
			isStarting := s.Begun.Before(t.startedAt()) && (s.Ended.IsZero() || s.Ended.At.After(t.Done.At))
			if isStarting && p.forgottenAt(s.Begun).IsZero() {
				p.violation(t.Done.At, "the pod is %s, but %s is being started", t.Result.Outcome(), s.Name)
			}
		}
		// A list must be newer than the last change: the termination's beginning, or the end of the last start.
		lastChange := t.startedAt()
		for _, s := range p.starts {
			if s.Begun.Before(t.Done) && s.Ended.At.Before(t.Done.At) && lastChange.Before(s.Ended) {
				lastChange = s.Ended
			}
		}
		lists := p.visibleLists(t.Done)
		if !t.IsForLateStart && !slices.ContainsFunc(lists, func(l *List) bool { return lastChange.Before(l.Called) }) {
			p.violation(t.Done.At, "the pod is %s, but no list was requested after %v", t.Result.Outcome(), p.sinceStart(lastChange.At))
		}
		// One of the lists that may be the last must have no running container.
		mayRun := func(c lifecycle.Container) bool { return !p.stopProvedEnd(c.ID, t.Done) }
		isEmpty := func(l *List) bool { return !slices.ContainsFunc(l.Running, mayRun) }
		if len(lists) > 0 && !slices.ContainsFunc(lists, isEmpty) {
			p.violation(t.Done.At, "the pod is %s, but the runtime lists %s", t.Result.Outcome(), names(lists[0].Running))
		}
	}
}

// leavesContainers reports whether the termination has reported a container that has not ended.
func (t *Termination) leavesContainers() bool {
	return slices.ContainsFunc(t.Result.Containers, func(c lifecycle.ContainerResult) bool { return !hasEnded(c.Outcome) })
}

// killedIsNotGraceful: a run that the runtime has killed is not reported as Graceful, because an operator who reads that
// would not look for the cause. A kill that the terminator cannot know of is not judged (knowsKill).
func (p *podHistory) killedIsNotGraceful() {
	for _, t := range p.terminations {
		for _, run := range p.runs {
			result := t.result(run.Container)
			isGraceful := result != nil && result.Outcome == lifecycle.OutcomeGraceful
			wasKilled := run.EndedBy == "KILL" && t.startedAt().Before(run.Exit) && run.Exit.Before(t.Done)
			if isGraceful && wasKilled && p.knowsKill(t, run) {
				p.violation(run.Exit.At, "%q", run.ID)
			}
		}
	}
}

// knowsKill reports whether a termination can know that the runtime has killed a run. It cannot if
//   - the runtime had said before, in a list or by the success of a stop, that the run had ended,
//   - a StopPod call was made after the kill, or at the time of the kill with a timeout, so that it did not kill the run:
//     an earlier StopPod call, for other containers of the pod, may have killed it, and the run's own call then succeeds
//     at once, as if the run had ended by itself,
//   - another run has the same ID, or
//   - nothing is listed, so that the success of a stop is all that the termination learns.
func (p *podHistory) knowsKill(t *Termination, run *Run) bool {
	wasSaidToHaveEnded := p.wasUnlisted(t, run) || slices.ContainsFunc(p.stopsOf(run.Container), func(s *Stop) bool {
		return s.succeeded() && s.Returned.Before(run.Exit)
	})
	isKilledForOther := slices.ContainsFunc(p.stops, func(s *Stop) bool {
		return s.ID == "" && (run.Exit.Before(s.Called) || s.Seconds > 0 && s.Called.At.Equal(run.Exit.At))
	})
	sharesID := slices.ContainsFunc(p.runs, func(other *Run) bool { return other != run && other.ID == run.ID })
	return !wasSaidToHaveEnded && !isKilledForOther && !sharesID && !p.successProvesEnd(run.ID)
}

// wasUnlisted reports whether the termination had to believe that the run had ended before it did: a list lacked the
// run, and no list that the termination still saw had it again. After Forget the termination sees no new lists.
func (p *podHistory) wasUnlisted(t *Termination, run *Run) (unlisted bool) {
	forgotten, listed := p.forgottenAt(t.startedAt()), p.firstListed(run.Container)
	for _, l := range p.lists {
		switch {
		case !l.Returned.Before(run.Exit):
			return unlisted
		case l.lacks(run.Container):
			unlisted = unlisted || listed.Before(l.Called) // not a list from before the run was first listed
		case l.Returned.Before(forgotten):
			unlisted = false
		}
	}
	return unlisted
}

// everyListedRunHasAResult: each run that a termination had to stop has a result of its own, even if it shares its ID
// with another run. Otherwise the caller does not learn whether the run has ended.
func (p *podHistory) everyListedRunHasAResult() {
	for _, t := range p.terminations {
		for _, c := range p.known {
			if !t.Done.IsZero() && !p.mustStopSince(t, c).IsZero() && t.result(c) == nil {
				p.violation(t.Done.At, "%q", c.ID)
			}
		}
	}
}

// failuresAreReported: if a container was forced, is stuck or was left running, its result has an error that says why.
func (p *podHistory) failuresAreReported() {
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			if c.Err == nil && (c.Outcome == lifecycle.OutcomeForced || !hasEnded(c.Outcome)) {
				p.violation(t.Done.At, "%s(%s) is %s without an error", c.Name, c.ID, c.Outcome)
			}
		}
	}
}

// failedStopsAreLogged: before a container is stopped again, the failure of the last stop is logged as an error: the line
// says why the pod takes long. A failure need not be logged if another stop of the same container succeeded while the failed
// call was in progress: the failure then changed nothing. If the test records no log, nothing is judged.
func (p *podHistory) failedStopsAreLogged() {
	for i, s := range p.stops {
		isFailure := !s.Returned.IsZero() && !s.succeeded() && !errors.Is(s.Err, context.Canceled)
		next := slices.IndexFunc(p.stops[i+1:], func(again *Stop) bool { // the first call for the container after this failure
			return again.ID == s.ID && s.Returned.Before(again.Called) && !s.Returned.At.Equal(again.Called.At)
		})
		if len(p.logs) == 0 || !isFailure || next < 0 {
			continue
		}
		again := p.stops[i+1+next]
		needsNoLog := slices.ContainsFunc(p.stops, func(other *Stop) bool {
			mayBeTooLate := !other.Returned.At.Before(s.Called.At)
			return other.ID == s.ID && other.succeeded() && mayBeTooLate && other.Returned.Before(s.Returned)
		})
		isLogged := slices.ContainsFunc(p.logs, func(line LogEntry) bool {
			return line.IsError && line.Before(again.Called) && strings.Contains(line.Text, p.key) && strings.Contains(line.Text, s.ID)
		})
		if !needsNoLog && !isLogged {
			p.violation(again.Called.At, "stop(%d) of %q failed, which was not logged", s.Seconds, s.ID)
		}
	}
}

// failedListsAreLogged: if a list of the pod fails, an error is logged, because a pod whose containers cannot be
// listed does not end. Any error line counts. A list that Close has ended is no failure, nor is the answer of a
// runtime that cannot list. If the test records no log, nothing is judged.
func (p *podHistory) failedListsAreLogged() {
	hasErrorLine := slices.ContainsFunc(p.logs, func(line LogEntry) bool { return line.IsError })
	if recordsLog := len(p.logs) > 0; !recordsLog || hasErrorLine {
		return
	}
	for _, l := range p.Record.lists {
		isCancelled := p.closedAt().Before(l.Returned) && (errors.Is(l.Err, context.Canceled) || errors.Is(l.Err, lifecycle.CauseTerminatorClosed))
		isFailure := l.Err != nil && !isCancelled && !errors.Is(l.Err, errors.ErrUnsupported)
		if l.Pod == p.key && isFailure {
			p.violation(l.Returned.At, "a list failed, and nothing was logged")
		}
	}
}
