package judge

import (
	"math"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// everyRunIsStoppedByItsDeadline: each run has had a StopContainer call with the remaining time by its deadline, or, if
// it was listed later, at that moment. Slow hooks, the order of containers, the runtime and events must not delay
// the call. Only if an earlier call has returned, a list and a pause may come first.
func (p *podHistory) everyRunIsStoppedByItsDeadline() {
	for _, t := range p.terminations {
		for _, c := range p.known {
			since := p.includedAt(t, c)
			if since.IsZero() || p.isOneAttempt() {
				continue
			}
			due := times.Later(t.lastDeadline(), since.At)
			by := due // the latest time of the call
			stops := p.stopsOf(c)
			if slices.ContainsFunc(stops, func(s *Stop) bool { return s.Returned.By(due) }) || p.options.Pods != nil && len(p.stopPodsBefore(c)) > 0 {
				by = due.Add(maxPause + 2*p.options.StopTimeoutSlack)
			}
			// Another call may have given up the run. A later run with its ID would be hit by a call.
			givenUp := p.earliestDeadline(c, Moment{At: by, Order: math.MaxInt}).Add(p.options.GiveUpAfter)
			isReplaced := slices.ContainsFunc(p.lists, func(l *List) bool { return l.Returned.By(by) && l.replaces(c) })
			isOver := isReplaced || t.Done.By(by) || p.closedAt().By(by) || !by.Before(givenUp) || t.usesList() && !p.staysListed(c, by)
			if isOver || slices.ContainsFunc(stops, func(s *Stop) bool {
				return s.Called.By(by) && (s.Seconds == 0 || !s.killAt().After(times.Later(due, s.Called.At).Add(minimum+times.Lag)))
			}) || p.isTrustedEnded(c.ID, Moment{At: by, Order: math.MaxInt}) {
				continue
			}
			p.violation("everyRunIsStoppedByItsDeadline", by, "no StopContainer call kills %q by %v", c.ID, p.since(due.Add(minimum)))
		}
	}
}

// stopPodsBefore returns the calls made before a run was known. With StopPod these may have stopped the run too.
func (p *podHistory) stopPodsBefore(c lifecycle.Container) (stops []*Stop) {
	first := p.firstKnown(c)
	for _, s := range p.stops {
		if s.Called.Before(first) {
			stops = append(stops, s)
		}
	}
	return stops
}

// failedStopsAreRepeated: while a run is not known to have ended, StopContainer is called again, each time after a
// pause and a list, until GiveUpAfter is over.
func (p *podHistory) failedStopsAreRepeated() {
	for _, t := range p.terminations {
		if p.isOneAttempt() || !t.usesList() {
			continue
		}
		for _, c := range p.known {
			stops := p.stopsOf(c)
			if p.includedAt(t, c).IsZero() || len(stops) == 0 {
				continue
			}
			if p.isTrustedEnded(c.ID, t.Done) {
				continue
			}
			last, unanswered := stops[len(stops)-1], 0
			for _, s := range stops {
				if s.Returned.IsZero() || s.Returned.At.After(last.Called.At) { // a hanging call returns when its stop ends
					unanswered++
				}
			}
			repliedBy := last.Returned.At
			if timedOutAt := last.killAt().Add(p.options.StopTimeoutSlack << min(unanswered+1, 10)); last.Returned.IsZero() || timedOutAt.Before(repliedBy) {
				repliedBy = timedOutAt
			}
			again := repliedBy.Add(maxPause + 2*p.options.StopTimeoutSlack)
			until := p.earliestDeadline(c, last.Called)
			if last.ID == "" {
				until = p.earliestKill(last)
			}
			givenUp := times.Later(until, stops[0].Called.At).Add(p.options.GiveUpAfter)
			if t.Done.By(again) || !again.Before(givenUp) || p.closedAt().By(again) {
				continue
			}
			if !slices.ContainsFunc(p.lists, func(l *List) bool { return !l.Called.At.Before(last.Called.At) && l.lacks(c) }) {
				p.violation("failedStopsAreRepeated", again, "%q was last stopped at %v, and not again", c.ID, p.since(last.Called.At))
			}
		}
	}
}

// isOneAttempt reports whether any request for the pod has OneAttempt: its caller repeats failed stops itself.
func (p *podHistory) isOneAttempt() bool {
	return slices.ContainsFunc(p.terminations, (*Termination).isOneAttempt) || slices.ContainsFunc(p.kills, func(u *Request) bool { return u.OneAttempt })
}

// nothingHangs: each call ends by GiveUpAfter past the deadline. For a run that was listed only after the deadline, the
// time counts from the first call that stops it. Close ends all calls at once.
func (p *podHistory) nothingHangs() {
	slack := maxPause + 4*p.options.StopTimeoutSlack + cancelSlack
	// lastAttempt returns the latest time at which a KillContainer call has begun to stop the run: its first
	// StopContainer call. GiveUpAfter counts from there again.
	lastAttempt := func(c lifecycle.Container) (first time.Time) {
		for _, u := range p.kills {
			for _, s := range p.stops {
				if u.matches(c) && s.ID == c.ID && u.Called.Before(s.Called) {
					first = times.Later(first, s.Called.At)
					break
				}
			}
		}
		return first
	}
	// included returns when the call first included a run; zero if never. Earlier stops of the run were
	// another attempt, with its own GiveUpAfter.
	assertEnds := func(what string, until, lastRequest time.Time, isShared bool, included func(lifecycle.Container) Moment, called, ended Moment) {
		if ended.IsZero() {
			ended.At = time.Now()
		}
		for _, t := range p.terminations {
			for _, u := range t.Requests {
				if isShared && u.Called.Before(ended) {
					until = times.Later(until, u.Deadline)
				}
			}
		}
		for _, c := range p.known {
			since := included(c)
			if since.IsZero() {
				continue
			}
			until = times.Later(until, lastAttempt(c))
			for _, s := range p.stopsOf(c) {
				if since.Before(s.Called) && s.Called.Before(ended) {
					until = times.Later(until, s.Called.At)
					if !isShared {
						break // only the first call counts
					}
				}
			}
		}
		end := times.Later(until.Add(p.options.GiveUpAfter), lastRequest).Add(slack)
		if closed := p.closedAt(); !closed.IsZero() {
			end = times.Earlier(end, times.Later(closed.At, called.At).Add(cancelSlack))
		}
		if ended.At.After(end) {
			p.violation("nothingHangs", end, "%s, called at %v, has not ended", what, p.since(called.At))
		}
	}
	for _, t := range p.terminations {
		lastRequest := t.startedAt().At
		for _, u := range t.Requests {
			lastRequest = times.Later(lastRequest, u.Called.At)
		}
		// Callers that retry, and the next termination of a forgotten pod, stop the containers again.
		isShared := p.isOneAttempt() || !p.forgottenAt(t.startedAt()).IsZero() || p.options.Pods != nil
		assertEnds("the termination", times.Later(t.lastDeadline(), t.startedAt().At), lastRequest, isShared, func(c lifecycle.Container) Moment {
			since := p.includedAt(t, c)
			if since.IsZero() && p.hasKillContainer(c, t.Done) {
				since = t.startedAt()
			}
			return since
		}, t.startedAt(), t.Done)
	}
	for _, u := range p.kills {
		if u.IsPostStart {
			continue
		}
		assertEnds("KillContainer", times.Later(u.Deadline, u.Called.At), u.Called.At, p.isOneAttempt() || len(p.forgets) > 0, func(c lifecycle.Container) Moment {
			if !u.matches(c) {
				return Moment{}
			}
			return u.Called
		}, u.Called, u.Returned)
	}
}

// hasKillContainer reports whether a KillContainer call before the moment may mean the run.
func (p *podHistory) hasKillContainer(c lifecycle.Container, before Moment) bool {
	return slices.ContainsFunc(p.kills, func(u *Request) bool { return u.matches(c) && u.Called.Before(before) })
}
