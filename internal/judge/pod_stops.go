package judge

import (
	"math"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// everyRunIsStoppedByItsDeadline: each run has had a StopContainer call by its deadline, or, if it was listed later,
// at that moment. The call kills the run at most 2 s later, which a container always gets. Neither a slow hook nor
// the order of containers, the runtime or an event recorder may delay the call, because nothing else ends the run.
// Only if an earlier call did not end it, a list and a pause may come first.
//
// Not judged are runs that need no stop (needsNoStop), and pods with OneAttempt, whose caller repeats failed stops
// himself.
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
			if slices.ContainsFunc(stops, func(s *Stop) bool { return s.Returned.By(due) }) {
				by = due.Add(p.repeatPause())
			}
			if earlier := p.stopsBefore(c); p.stopsAsUnit() && len(earlier) > 0 { // they may have stopped the run too
				by = times.Later(due.Add(p.repeatPause()), p.repeatBy(earlier))
			}
			isStopped := slices.ContainsFunc(stops, func(s *Stop) bool {
				return s.Called.By(by) && (s.Seconds == 0 || !s.killAt().After(times.Later(due, s.Called.At).Add(minimum+times.Lag)))
			})
			if !isStopped && !p.needsNoStop(t, c, by) {
				p.violation(by, "no StopContainer call kills %q by %v", c.ID, p.since(due.Add(minimum)))
			}
		}
	}
}

// needsNoStop reports whether no call has to stop a run at the time by, because
//   - it may have ended: it is not in all lists, or a successful stop proves its end,
//   - a list has a later run with its ID,
//   - GiveUpAfter past its deadline is over, or
//   - the termination has ended, or Close was called.
func (p *podHistory) needsNoStop(t *Termination, c lifecycle.Container, by time.Time) bool {
	end := Moment{At: by, Order: math.MaxInt} // after all else at that time
	mayHaveEnded := t.usesList() && !p.staysListed(c, by) || p.isTrustedEnded(c.ID, end)
	isReplaced := slices.ContainsFunc(p.lists, func(l *List) bool { return l.Returned.By(by) && l.replaces(c) })
	isGivenUp := !by.Before(p.earliestDeadline(c, end).Add(p.options.GiveUpAfter)) // perhaps by another call
	return mayHaveEnded || isReplaced || isGivenUp || t.Done.By(by) || p.closedAt().By(by)
}

// stopsBefore returns the calls that stopped the pod or one of its containers before a run was first listed or named
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

// repeatBy returns the latest time at which the terminator repeats the last of several calls that stop a run: a list
// and a pause after the call has returned, or after the terminator has stopped waiting for its return. That wait
// lasts StopTimeoutSlack past the timeout of the call, and twice as long after each call that hangs, so that few
// calls pile up.
func (p *podHistory) repeatBy(stops []*Stop) time.Time {
	last, unanswered := stops[len(stops)-1], 0 // how many calls had not returned when the last one was made, with that one
	for _, s := range stops {
		if s.Returned.IsZero() || s.Returned.At.After(last.Called.At) { // a hanging call returns when its stop ends
			unanswered++
		}
	}
	repliedBy := last.killAt().Add(p.options.StopTimeoutSlack << min(unanswered+1, 10)) // 10: the slack does not overflow
	if last.Returned.By(repliedBy) {
		repliedBy = last.Returned.At
	}
	return repliedBy.Add(p.repeatPause())
}

// failedStopsAreRepeated: while a run is not known to have ended, StopContainer is called again, each time after a
// pause and a list. A runtime that fails for a while must not cost the node a container that runs on. No call need
// follow if a list shows the end of the run, or if by the time of that call
//   - GiveUpAfter has passed since the deadline or the first call, whichever was later, or
//   - the termination has ended, or Close was called.
//
// Not judged are terminations that never list, and pods with OneAttempt, whose caller repeats failed stops himself.
func (p *podHistory) failedStopsAreRepeated() {
	for _, t := range p.terminations {
		if p.isOneAttempt() || !t.usesList() {
			continue
		}
		for _, c := range p.known {
			stops := p.stopsOf(c)
			if p.includedAt(t, c).IsZero() || len(stops) == 0 || p.isTrustedEnded(c.ID, t.Done) {
				continue
			}
			last, by := stops[len(stops)-1], p.repeatBy(stops)
			until := p.earliestDeadline(c, last.Called)
			if p.stopsAsUnit() {
				until = p.earliestKill(last)
			}
			isGivenUp := !by.Before(times.Later(until, stops[0].Called.At).Add(p.options.GiveUpAfter))
			hasEnded := slices.ContainsFunc(p.lists, func(l *List) bool { return l.provesEnd(c, last.Called.At) })
			if !hasEnded && !isGivenUp && !t.Done.By(by) && !p.closedAt().By(by) {
				p.violation(by, "%q was last stopped at %v, and not again", c.ID, p.since(last.Called.At))
			}
		}
	}
}

// nothingIsGivenUpEarly: a container is reported as stuck only GiveUpAfter past its deadline, and as left running
// only after Close, because nobody stops it after that. A stuck container is not judged if its caller repeats failed
// stops himself (OneAttempt), if the runtime cannot list, or if the pod was forgotten.
func (p *podHistory) nothingIsGivenUpEarly() {
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			if c.Outcome == lifecycle.OutcomeLeftRunning && !p.closedAt().Before(t.Done) {
				p.violation(t.Done.At, "%s(%s) is %s, though nobody has called Close", c.Name, c.ID, c.Outcome)
			}
			if c.Outcome != lifecycle.OutcomeRuntimeStuck || p.isOneAttempt() || p.cannotList() || p.wasForgotten(t) {
				continue
			}
			until := t.lastDeadline() // of a container without an ID
			switch {
			case c.ID != "" && p.stopsAsUnit():
				until = p.earliestDeadlineOf(p.known, t.Done)
			case c.ID != "":
				until = p.earliestDeadline(lifecycle.Container{ID: c.ID, Began: c.Began}, t.Done)
			}
			if givenUp := until.Add(p.options.GiveUpAfter); !until.IsZero() && t.Done.At.Before(givenUp) {
				p.violation(t.Done.At, "%s(%s) is %s before %v", c.Name, c.ID, c.Outcome, p.since(givenUp))
			}
		}
	}
}

// nothingHangs: each termination and each KillContainer call ends by GiveUpAfter past its deadline, and Close ends
// all of them at once. A caller that waits longer would take the time of the other pods. For a run that was listed
// only after the deadline, the time counts from the first call that stops it. PostStart's own calls are not judged.
func (p *podHistory) nothingHangs() {
	for _, t := range p.terminations {
		c := blockingCall{what: "the termination", called: t.startedAt(), ended: t.Done, until: times.Later(t.lastDeadline(), t.startedAt().At)}
		c.lastRequest = t.startedAt().At
		for _, u := range t.Requests {
			c.lastRequest = times.Later(c.lastRequest, u.Called.At)
		}
		c.isShared = p.isOneAttempt() || p.wasForgotten(t) || p.stopsAsUnit()
		c.included = func(run lifecycle.Container) Moment {
			since := p.includedAt(t, run)
			isKilled := slices.ContainsFunc(p.kills, func(u *Request) bool { return u.matches(run) && u.Called.Before(t.Done) })
			if since.IsZero() && isKilled { // it may wait for the run of a KillContainer call
				since = t.startedAt()
			}
			return since
		}
		p.assertEnds(c)
	}
	for _, u := range p.kills {
		if u.IsPostStart {
			continue
		}
		c := blockingCall{what: "KillContainer", called: u.Called, ended: u.Returned, until: times.Later(u.Deadline, u.Called.At), lastRequest: u.Called.At}
		c.isShared = p.isOneAttempt() || len(p.forgets) > 0
		c.included = func(run lifecycle.Container) Moment {
			if !u.matches(run) {
				return Moment{}
			}
			return u.Called
		}
		p.assertEnds(c)
	}
}

// blockingCall is a termination or a KillContainer call, which must end in time.
type blockingCall struct {
	what          string
	called, ended Moment
	until         time.Time                        // the deadline
	lastRequest   time.Time                        // the time of the newest request
	isShared      bool                             // other callers stop the same containers again: those who retry, and the next termination of a forgotten pod
	included      func(lifecycle.Container) Moment // when the call had to stop a run; zero: never
}

// assertEnds records a violation if a call has not ended in time. It has GiveUpAfter from the latest of
//   - its deadline; if others stop the same containers too (isShared), the deadline of each request for the pod,
//   - its first call that stops a container; if isShared, each such call,
//   - the first stop of each KillContainer call for one of its containers.
//
// It need not end before its newest request, and has some time more for a pause and for calls that hang. Close leaves
// it only cancelSlack. A call that has not ended is judged as if it ended now.
func (p *podHistory) assertEnds(c blockingCall) {
	ended := c.ended
	if ended.IsZero() {
		ended.At = time.Now()
	}
	until := c.until
	for _, t := range p.terminations {
		for _, u := range t.Requests {
			if c.isShared && u.Called.Before(ended) {
				until = times.Later(until, u.Deadline)
			}
		}
	}
	for _, run := range p.known {
		since := c.included(run)
		if since.IsZero() {
			continue
		}
		until = times.Later(until, p.lastAttempt(run))
		for _, s := range p.stopsOf(run) {
			if since.Before(s.Called) && s.Called.Before(ended) {
				until = times.Later(until, s.Called.At)
				if !c.isShared {
					break // only the first call counts
				}
			}
		}
	}
	end := times.Later(until.Add(p.options.GiveUpAfter), c.lastRequest).Add(maxPause + 4*p.options.StopTimeoutSlack + cancelSlack)
	if closed := p.closedAt(); !closed.IsZero() {
		end = times.Earlier(end, times.Later(closed.At, c.called.At).Add(cancelSlack))
	}
	if ended.At.After(end) {
		p.violation(end, "%s, called at %v, has not ended", c.what, p.since(c.called.At))
	}
}

// lastAttempt returns when a run was last stopped for a new KillContainer call. GiveUpAfter counts again from then. Of
// the stops after a call only the first counts, because the others repeat it. Zero: there is none.
func (p *podHistory) lastAttempt(c lifecycle.Container) (last time.Time) {
	for _, u := range p.kills {
		for _, s := range p.stops {
			if u.matches(c) && s.ID == c.ID && u.Called.Before(s.Called) {
				last = times.Later(last, s.Called.At)
				break // only the first stop of this KillContainer call
			}
		}
	}
	return last
}
