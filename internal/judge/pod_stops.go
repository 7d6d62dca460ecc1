package judge

import (
	"math"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// everyRunIsStoppedByItsDeadline: each run has had a StopContainer call by its deadline, or at once if it was first listed
// after that. The call kills the run at most 2 s later: a container always gets these 2 s. Neither a slow hook nor the
// order of containers, the runtime or an event recorder may delay the call, because nothing else ends the run. Only if an
// earlier call did not end the run, a list and a pause may come first.
//
// Not judged are runs that need no stop (needsNoStop), and pods with OneAttempt, whose caller repeats failed stops.
func (p *podHistory) everyRunIsStoppedByItsDeadline() {
	for _, t := range p.terminations {
		for _, c := range p.known {
			since := p.mustStopSince(t, c)
			if since.IsZero() || p.isOneAttempt() {
				continue
			}
			due := times.Later(t.lastDeadline(), since.At)
			latest := due // the latest time of the StopContainer call
			stops := p.stopsOf(c)
			if hasEarlier := slices.ContainsFunc(stops, func(s *Stop) bool { return s.Returned.By(due) }); hasEarlier {
				latest = due.Add(p.repeatPause())
			}
			if earlier := p.stopsBefore(c); p.stopsAsUnit() && len(earlier) > 0 { // these calls may have stopped the run, too
				latest = times.Later(due.Add(p.repeatPause()), p.repeatBy(earlier))
			}
			isStopped := slices.ContainsFunc(stops, func(s *Stop) bool {
				latestKill := times.Later(due, s.Called.At).Add(minimum + times.Lag)
				return s.Called.By(latest) && (s.Seconds == 0 || !s.killAt().After(latestKill))
			})
			if !isStopped && !p.needsNoStop(t, c, latest) {
				p.violation(latest, "no StopContainer call kills %q by %v", c.ID, p.sinceStart(due.Add(minimum)))
			}
		}
	}
}

// needsNoStop reports whether a run needs no StopContainer call at the time latest, because by then
//   - the run may have ended: it is not in all lists (if the termination uses lists), or a successful stop proves its end,
//   - a list has had a later run with the same ID,
//   - GiveUpAfter has passed since the earliest deadline that a termination or call gave the run, or
//   - the termination has ended, or Close was called.
func (p *podHistory) needsNoStop(t *Termination, c lifecycle.Container, latest time.Time) bool {
	end := Moment{At: latest, Order: math.MaxInt} // after everything else at that time
	mayHaveEnded := t.usesList() && !p.staysListed(c, latest) || p.stopProvedEnd(c.ID, end)
	isReplaced := slices.ContainsFunc(p.lists, func(l *List) bool { return l.Returned.By(latest) && l.replaces(c) })
	isGivenUp := !latest.Before(p.earliestDeadline(c, end).Add(p.options.GiveUpAfter))
	return mayHaveEnded || isReplaced || isGivenUp || t.Done.By(latest) || p.closedAt().By(latest)
}

// stopsBefore returns all stops of the pod and its containers that were called before the run c was first listed, or named
// by a caller.
func (p *podHistory) stopsBefore(c lifecycle.Container) (stops []*Stop) {
	first := p.firstKnown(c)
	for _, s := range p.stops {
		if s.Called.Before(first) {
			stops = append(stops, s)
		}
	}
	return stops
}

// repeatPause returns how long a list and the pause before the next call may take.
func (p *podHistory) repeatPause() time.Duration { return maxPause + 2*p.options.StopTimeoutSlack }

// repeatBy returns by when the terminator has called again to stop a run, if stops are its calls so far. Before the next
// call come a pause and a list (repeatPause), which begin when the last call has returned. If that call hangs, the
// terminator waits for it until StopTimeoutSlack after the call's timeout. This slack doubles with each earlier call that
// still hangs, so that few calls hang at the same time. repeatBy allows four times the slack.
func (p *podHistory) repeatBy(stops []*Stop) time.Time {
	last, earlier := stops[len(stops)-1], stops[:len(stops)-1]
	hanging := 0 // how many earlier calls had not returned when the last one was made
	for _, s := range earlier {
		if s.Returned.IsZero() || s.Returned.At.After(last.Called.At) { // a hanging call returns when its stop ends
			hanging++
		}
	}
	slack := p.options.StopTimeoutSlack << min(hanging, 8) // the terminator's; 8: it does not overflow
	repliedBy := last.killAt().Add(4 * slack)
	if last.Returned.By(repliedBy) {
		repliedBy = last.Returned.At
	}
	return repliedBy.Add(p.repeatPause())
}

// failedStopsAreRepeated: while a run is not known to have ended, StopContainer is called again, each time after a
// pause and a list. A runtime that fails for a while must not cost the node a container that runs on. No call need
// follow if a list shows the end of the run. The list may also have come before the last call: that call is then a
// StopPod call for other containers. Nor need a call follow if by its time
//   - GiveUpAfter has passed since the deadline or the first call, whichever was later, or
//   - the termination has ended, or Close was called.
//
// Not judged are terminations that never list, and pods with OneAttempt, whose caller repeats failed stops.
func (p *podHistory) failedStopsAreRepeated() {
	for _, t := range p.terminations {
		if p.isOneAttempt() || !t.usesList() {
			continue
		}
		for _, c := range p.known {
			stops := p.stopsOf(c)
			if p.mustStopSince(t, c).IsZero() || len(stops) == 0 || p.stopProvedEnd(c.ID, t.Done) {
				continue
			}
			last, nextBy := stops[len(stops)-1], p.repeatBy(stops)
			deadline := p.earliestDeadline(c, last.Called)
			if p.stopsAsUnit() {
				deadline = p.earliestKill(last)
			}
			for _, request := range t.Shortens { // also after the last call: the container is then given up earlier
				if request.Called.By(nextBy) {
					deadline = times.Earlier(deadline, request.Deadline)
				}
			}
			giveUpAt := times.Later(deadline, stops[0].Called.At).Add(p.options.GiveUpAfter)
			isGivenUp := !nextBy.Before(giveUpAt)
			hasEnded := slices.ContainsFunc(p.lists, func(l *List) bool { return l.provesEnd(c, last.Called.At) })
			hadEnded := slices.ContainsFunc(p.visibleLists(last.Called), func(l *List) bool { return l.provesEnd(c, stops[0].Called.At) })
			if !hasEnded && !hadEnded && !isGivenUp && !t.Done.By(nextBy) && !p.closedAt().By(nextBy) {
				p.violation(nextBy, "%q was last stopped at %v, and not again", c.ID, p.sinceStart(last.Called.At))
			}
		}
	}
}

// nothingIsGivenUpEarly: a container is reported as left running only if Close was called, and as stuck only once
// GiveUpAfter has passed since its deadline. A stuck container may be reported earlier, and is not judged, if its caller
// repeats failed stops (OneAttempt), if the runtime cannot list, or if Forget was called for its pod.
func (p *podHistory) nothingIsGivenUpEarly() {
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			if c.Outcome == lifecycle.OutcomeLeftRunning && !p.closedAt().Before(t.Done) {
				p.violation(t.Done.At, "%s(%s) is %s, though nobody has called Close", c.Name, c.ID, c.Outcome)
			}
			if c.Outcome != lifecycle.OutcomeRuntimeStuck || p.isOneAttempt() || p.cannotList() || p.wasForgotten(t) {
				continue
			}
			var deadline time.Time
			switch {
			case c.ID == "": // the result is of the pod as a whole
				deadline = t.lastDeadline()
			case p.stopsAsUnit():
				deadline = p.earliestDeadlineOf(p.known, t.Done)
			default:
				deadline = p.earliestDeadline(lifecycle.Container{ID: c.ID, Began: c.Began}, t.Done)
			}
			if earliest := deadline.Add(p.options.GiveUpAfter); !deadline.IsZero() && t.Done.At.Before(earliest) {
				p.violation(t.Done.At, "%s(%s) is %s before %v", c.Name, c.ID, c.Outcome, p.sinceStart(earliest))
			}
		}
	}
}

// nothingHangs: each termination and each KillContainer call ends, and Close ends all of them at once. A caller that waits
// longer would take the time of the other pods. PostStart's own calls are not judged.
func (p *podHistory) nothingHangs() {
	for _, t := range p.terminations {
		p.assertEnds("the termination", t.startedAt(), t.Done)
	}
	for _, request := range p.kills {
		if !request.IsPostStart {
			p.assertEnds("KillContainer", request.Called, request.Returned)
		}
	}
}

// assertEnds records a violation if a call has not ended in time. It has GiveUpAfter from the latest of
//   - the deadline of each request for the pod, since others may stop the same containers, and
//   - the first StopContainer call for each run of the pod, if it is made by GiveUpAfter past the last of these deadlines: a
//     run that is listed so late has GiveUpAfter from its first stop on,
//
// and the time of a pause and of calls that hang. After Close it must end within cancelSlack. A call that has not ended is
// judged as if it ended now.
func (p *podHistory) assertEnds(call string, called, ended Moment) {
	if ended.IsZero() {
		ended.At = time.Now()
	}
	lastDeadline := called.At
	requests := slices.Clone(p.kills)
	for _, t := range p.terminations {
		requests = append(requests, t.Requests...)
	}
	for _, request := range requests {
		if request.Called.Before(ended) {
			lastDeadline = times.Later(lastDeadline, request.Deadline)
		}
	}
	from, lastFirstStop := lastDeadline, lastDeadline.Add(p.options.GiveUpAfter)
	for _, run := range p.known {
		stops := p.stopsOf(run)
		if len(stops) == 0 {
			continue
		}
		if first := stops[0].Called; first.Before(ended) && !first.At.After(lastFirstStop) {
			from = times.Later(from, first.At)
		}
	}
	end := from.Add(p.options.GiveUpAfter + maxPause + 4*p.options.StopTimeoutSlack + cancelSlack)
	if closed := p.closedAt(); !closed.IsZero() {
		end = times.Earlier(end, times.Later(closed.At, called.At).Add(cancelSlack))
	}
	if ended.At.After(end) {
		p.violation(end, "%s, called at %v, has not ended", call, p.sinceStart(called.At))
	}
}
