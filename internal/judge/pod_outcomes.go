package judge

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// noRunningContainerIsReportedEnded: a pod or a run is reported as ended only if a list proves it. The list lacks the
// run, and was requested after the call that stopped it and after the last start; or it has a later run with the
// same ID. For containers that the caller named, the success of StopContainer is the proof.
func (p *podHistory) noRunningContainerIsReportedEnded() {
	const rule = "noRunningContainerIsReportedEnded"
	for _, t := range p.terminations {
		if t.Done.IsZero() {
			continue
		}
		forgotten := p.forgottenAt(t.startedAt())
		isForgotten := !forgotten.IsZero() && !forgotten.At.After(t.Done.At)
		isEmptyForT := func(l *List) bool {
			return t.startedAt().Before(l.Called) && l.Returned.Before(t.Done) && (forgotten.IsZero() || !l.Returned.At.After(forgotten.At)) && len(l.Running) == 0
		}
		for _, c := range t.Result.Containers {
			if c.Outcome == lifecycle.OutcomeNotFound && c.ID == "" && t.usesList() && !t.IsForLateStart && !slices.ContainsFunc(p.lists, isEmptyForT) {
				p.violation(rule, t.Done.At, "%s is %s, but no list requested since is empty", c.Name, c.Outcome)
			}
			if !hasEnded(c.Outcome) || c.ID == "" || !t.usesList() && !t.namesID(c.ID) { // the request names the containers
				continue
			}
			run := lifecycle.Container{ID: c.ID, Began: c.Began}
			var first Moment
			for _, s := range p.stops {
				if (s.ID == run.ID && c.Outcome != lifecycle.OutcomeNotFound || s.ID == "") && first.IsZero() && !s.Called.At.Before(p.firstKnown(run).At) {
					first = s.Called
				}
			}
			isMissed := slices.ContainsFunc(p.lists, func(l *List) bool {
				isNewEnough := !l.Called.At.Before(times.Later(first.At, p.firstKnown(run).At))
				return l.Returned.Before(t.Done) && l.lacks(run) && (isNewEnough || l.replaces(run))
			})
			if !p.firstKnown(run).IsZero() && !isMissed && !p.isTrustedEnded(c.ID, t.Done) {
				p.violation(rule, t.Done.At, "%q is %s, but no list requested after its stop lacks it", c.ID, c.Outcome)
			}
		}
		lists := p.visibleLists(t.Done)
		if isForgotten || !t.usesList() || slices.ContainsFunc(t.Result.Containers, func(c lifecycle.ContainerResult) bool { return !hasEnded(c.Outcome) }) {
			continue
		}
		since := t.startedAt()
		for _, s := range p.starts {
			if s.Begun.Before(t.Done) && s.Ended.At.Before(t.Done.At) && since.Before(s.Ended) {
				since = s.Ended
			}
			if s.Begun.Before(t.startedAt()) && (s.Ended.IsZero() || s.Ended.At.After(t.Done.At)) && p.forgottenAt(s.Begun).IsZero() {
				p.violation(rule, t.Done.At, "the pod is %s, but %s is being started", t.Result.Outcome(), s.Name)
			}
		}
		if !t.IsForLateStart && !slices.ContainsFunc(lists, func(l *List) bool { return since.Before(l.Called) }) {
			p.violation(rule, t.Done.At, "the pod is %s, but no list was requested after %v", t.Result.Outcome(), p.since(since.At))
		}
		isEmpty := func(l *List) bool {
			return !slices.ContainsFunc(l.Running, func(c lifecycle.Container) bool { return !p.isTrustedEnded(c.ID, t.Done) })
		}
		if len(lists) > 0 && !slices.ContainsFunc(lists, isEmpty) {
			p.violation(rule, t.Done.At, "the pod is %s, but the runtime lists %s", t.Result.Outcome(), names(lists[0].Running))
		}
	}
}

// noKilledContainerIsStillListed: if KillContainer reports that the container has ended, a list that was requested
// during the call lacks the container.
func (p *podHistory) noKilledContainerIsStillListed() {
	for _, u := range p.kills {
		seen := p.visibleLists(u.Returned)
		if u.Returned.IsZero() || !hasEnded(u.Result.Outcome) || len(seen) == 0 || p.isNamed(u.Containers[0].ID) {
			continue
		}
		since, runsWithID := u.Called.At, 0
		for _, s := range p.stops {
			if s.ID == u.Containers[0].ID {
				since = times.Earlier(since, s.Called.At) // it may have joined a stop in progress
			}
		}
		for _, c := range p.known {
			if c.ID == u.Containers[0].ID {
				runsWithID++
			}
		}
		if runsWithID < 2 && !slices.ContainsFunc(p.lists, func(l *List) bool {
			return !l.Called.At.Before(since) && l.Returned.Before(u.Returned) && !slices.ContainsFunc(l.Running, u.matches)
		}) {
			p.violation("noKilledContainerIsStillListed", u.Returned.At, "%q is %s", u.Containers[0].ID, u.Result.Outcome)
		}
	}
}

// isTrustedEnded reports whether the terminator may take a container for ended without a list: a caller named it, and
// a call that stops it has succeeded before the moment.
func (p *podHistory) isTrustedEnded(id string, by Moment) bool {
	return p.isNamed(id) && slices.ContainsFunc(p.stops, func(s *Stop) bool { return (s.ID == id || s.ID == "") && s.succeeded() && s.Returned.Before(by) })
}

// isNamed reports whether a Terminate call named the container. The terminator then lists nothing, and has to trust a
// successful StopContainer call.
func (p *podHistory) isNamed(id string) bool {
	return slices.ContainsFunc(p.terminations, func(t *Termination) bool { return t.namesID(id) })
}

// namesID reports whether a Terminate call named the container.
func (t *Termination) namesID(id string) bool {
	return slices.ContainsFunc(t.Requests, func(u *Request) bool {
		return slices.ContainsFunc(u.Containers, func(c lifecycle.Container) bool { return c.ID == id })
	})
}

// killedIsNotGraceful: a run that the runtime has killed is not reported as Graceful. It may be if the runtime had
// wrongly reported its end before the kill: as the result of StopContainer, or in the last list that the
// termination saw.
func (p *podHistory) killedIsNotGraceful() {
	for _, t := range p.terminations {
		for _, run := range p.runs {
			result := t.result(run.Container)
			wasReportedEnded := p.wasUnlisted(t, run) || slices.ContainsFunc(p.stopsOf(run.Container), func(s *Stop) bool {
				return s.succeeded() && s.Returned.Before(run.Exit)
			})
			isOfUnit := slices.ContainsFunc(p.stops, func(s *Stop) bool { // killed by a StopPod for other containers
				return s.ID == "" && (run.Exit.Before(s.Called) || s.Seconds > 0 && s.Called.At.Equal(run.Exit.At))
			})
			isReused := slices.ContainsFunc(p.runs, func(other *Run) bool { return other != run && other.ID == run.ID })
			isGraceful := result != nil && result.Outcome == lifecycle.OutcomeGraceful
			wasKilledByT := run.EndedBy == "KILL" && t.startedAt().Before(run.Exit) && run.Exit.Before(t.Done)
			isExcused := p.isNamed(run.ID) || wasReportedEnded || isReused || isOfUnit
			if isGraceful && wasKilledByT && !isExcused {
				p.violation("killedIsNotGraceful", run.Exit.At, "%q", run.ID)
			}
		}
	}
}

// wasUnlisted reports whether the termination had to believe that the run had ended before it did: a list lacked the
// run, and no list that the termination still saw had it again. After Forget the termination sees no new lists.
func (p *podHistory) wasUnlisted(t *Termination, run *Run) (unlisted bool) {
	forgotten, listed := p.forgottenAt(t.startedAt()), p.firstListed(run.Container)
	if !forgotten.Before(run.Exit) {
		return false
	}
	for _, l := range p.lists {
		switch {
		case !l.Returned.Before(run.Exit):
			return unlisted
		case l.lacks(run.Container):
			unlisted = unlisted || listed.Before(l.Called)
		case l.Returned.Before(forgotten):
			unlisted = false
		}
	}
	return unlisted
}

// nothingIsGivenUpEarly: a container is stuck only GiveUpAfter past its deadline, and left running only by Close. The
// exceptions are callers who try again by themselves, and a runtime that cannot list.
func (p *podHistory) nothingIsGivenUpEarly() {
	canList := !slices.ContainsFunc(p.Record.lists, func(l *List) bool { return errors.Is(l.Err, errors.ErrUnsupported) })
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			if c.Outcome == lifecycle.OutcomeLeftRunning && !p.closedAt().Before(t.Done) {
				p.violation("nothingIsGivenUpEarly", t.Done.At, "%s(%s) is %s, though nobody has called Close", c.Name, c.ID, c.Outcome)
			}
			if c.Outcome != lifecycle.OutcomeRuntimeStuck || p.isOneAttempt() || !canList || !p.forgottenAt(t.startedAt()).IsZero() {
				continue
			}
			until := t.lastDeadline()
			if c.ID != "" {
				until = p.earliestDeadline(lifecycle.Container{ID: c.ID, Began: c.Began}, t.Done)
			}
			if givenUp := until.Add(p.options.GiveUpAfter); !until.IsZero() && t.Done.At.Before(givenUp) {
				p.violation("nothingIsGivenUpEarly", t.Done.At, "%s(%s) is %s before %v", c.Name, c.ID, c.Outcome, p.since(givenUp))
			}
		}
	}
}

// everyListedRunHasAResult: each run that a termination had to stop has a result of its own, even if it shares its ID
// with another run.
func (p *podHistory) everyListedRunHasAResult() {
	for _, t := range p.terminations {
		for _, c := range p.known {
			if !t.Done.IsZero() && !p.includedAt(t, c).IsZero() && t.result(c) == nil {
				p.violation("everyListedRunHasAResult", t.Done.At, "%q", c.ID)
			}
		}
	}
}

// failuresAreReported: a run that was forced, is stuck or was left running has an error in its result. Failures of the
// runtime are logged.
func (p *podHistory) failuresAreReported() {
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			if c.Err == nil && (c.Outcome == lifecycle.OutcomeForced || !hasEnded(c.Outcome)) {
				p.violation("failuresAreReported", t.Done.At, "%s(%s) is %s without an error", c.Name, c.ID, c.Outcome)
			}
		}
	}
	for i, s := range p.stops {
		if len(p.logs) == 0 || s.Returned.IsZero() || s.succeeded() || errors.Is(s.Err, context.Canceled) {
			continue
		}
		for _, again := range p.stops[i+1:] {
			if again.ID != s.ID || !s.Returned.Before(again.Called) || s.Returned.At.Equal(again.Called.At) {
				continue
			}
			hasSucceeded := slices.ContainsFunc(p.stops, func(other *Stop) bool { // a concurrent call, so that nobody waited for s
				return other.ID == s.ID && other.succeeded() && s.Called.Before(other.Returned) && other.Returned.Before(s.Returned)
			})
			if hasSucceeded {
				break
			}
			if !slices.ContainsFunc(p.logs, func(line LogEntry) bool {
				return line.IsError && line.Before(again.Called) && strings.Contains(line.Text, p.key) && strings.Contains(line.Text, s.ID)
			}) {
				p.violation("failuresAreReported", again.Called.At, "stop(%d) of %q failed, which was not logged", s.Seconds, s.ID)
			}
			break
		}
	}
	isLogged := slices.ContainsFunc(p.logs, func(s LogEntry) bool { return s.IsError })
	for _, l := range p.Record.lists {
		isCancelled := p.closedAt().Before(l.Returned) && (errors.Is(l.Err, context.Canceled) || errors.Is(l.Err, lifecycle.CauseTerminatorClosed))
		isFailure := l.Err != nil && !isCancelled && !errors.Is(l.Err, errors.ErrUnsupported)
		if l.Pod == p.key && isFailure && len(p.logs) > 0 && !isLogged {
			p.violation("failuresAreReported", l.Returned.At, "a list failed, and nothing was logged")
		}
	}
}
