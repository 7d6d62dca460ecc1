package judge

import (
	"math"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// everyRunIsStoppedByItsDeadline: a call to stop a container is made by the container's deadline or, if the termination learns of
// the container later, at once. The call's timeout ends at most minimumTimeout after that time or the call, whichever is later.
// Neither a slow hook, other containers, the runtime nor an event recorder may delay the call: nothing else ends the container.
func (p *podHistory) everyRunIsStoppedByItsDeadline() {
	for _, r := range p.runsToStop {
		latestCall := p.latestStopCall(r)
		isInTime := func(s *StopCall) bool {
			latestKill := times.Later(r.stopDue(), s.Called.At).Add(minimumTimeout + times.Lag)
			return s.Called.HappenedBy(latestCall) && !s.killAt().After(latestKill)
		}
		isStopped := slices.ContainsFunc(r.stopCalls, isInTime)
		if !isStopped && !p.isStopExcused(r, latestCall) {
			p.addViolation(latestCall, "no StopContainer call kills %q by %v", r.run.ID, p.sinceStart(r.stopDue().Add(minimumTimeout)))
		}
	}
}

// latestStopCall returns by when the terminator must call to stop a run of a container: when the stop is due, or later if it first
// has to repeat a call. It repeats a call that returned without ending the run. A StopPod call is also made again, once the
// earlier StopPod calls have returned, if the container was not known when these were made.
func (p *podHistory) latestStopCall(r *runToStop) time.Time {
	due, known := r.stopDue(), p.firstKnownAt(r.run)
	var callsBeforeKnown []*StopCall // StopPod calls
	for _, s := range p.stopCalls {
		if s.isStopPod() && s.Called.Before(known) {
			callsBeforeKnown = append(callsBeforeKnown, s)
		}
	}
	hasReturned := func(s *StopCall) bool { return s.Returned.HappenedBy(due) }
	switch {
	case len(callsBeforeKnown) > 0:
		return times.Later(due.Add(p.maxRepeatPause()), p.nextStopBy(callsBeforeKnown))
	case slices.ContainsFunc(r.stopCalls, hasReturned):
		return due.Add(p.maxRepeatPause())
	default:
		return due
	}
}

// isStopExcused reports whether the terminator has a good reason not to have called by a time to stop the run of a container.
func (p *podHistory) isStopExcused(r *runToStop, latestCall time.Time) bool {
	end := Moment{At: latestCall, Order: math.MaxInt} // after everything else at that time
	giveUpAt := p.earliestPossibleDeadline(end, r.run).Add(p.options.GiveUpAfter)
	switch { // each case is a reason
	case p.callerRepeatsStops():
	case r.Done.HappenedBy(latestCall) || p.closedAt().HappenedBy(latestCall): // nothing is stopped any more
	case p.endProvedByStop(r.run.ID, end):
	case r.usesLists() && !p.staysListedUntil(r.run, latestCall): // a list lacks it, so it may have ended
	case !latestCall.Before(giveUpAt):
	default:
		return false
	}
	return true
}

// staysListedUntil reports whether a run of a container was listed, and all later lists that returned by a time have it, too.
func (p *podHistory) staysListedUntil(run lifecycle.Container, end time.Time) bool {
	first := p.firstListedAt(run)
	isMissing := func(l *List) bool { return first.Before(l.Returned) && l.Returned.HappenedBy(end) && l.lacks(run) }
	return !first.IsZero() && !slices.ContainsFunc(p.lists, isMissing)
}

// maxRepeatPause returns how much time may pass between the return of a stop call and the next one: a pause, and two lists,
// because a new list waits for one in progress. A list ends after StopTimeoutSlack at the latest.
func (p *podHistory) maxRepeatPause() time.Duration { return maxPause + 2*p.options.StopTimeoutSlack }

// failedStopsAreRepeated: the terminator calls again and again to stop a container until it knows that the container has ended.
// Otherwise a runtime that fails for a while would cost the node a container that runs on.
func (p *podHistory) failedStopsAreRepeated() {
	for _, r := range p.runsToStop {
		if len(r.stopCalls) == 0 {
			continue
		}
		if nextBy := p.nextStopBy(r.stopCalls); !p.isRepeatExcused(r, nextBy) {
			p.addViolation(nextBy, "%q was last stopped at %v, and not again", r.run.ID, p.sinceStart(r.lastStop().Called.At))
		}
	}
}

// lastStop returns the last call to stop the run; there must be one.
func (r *runToStop) lastStop() *StopCall { return r.stopCalls[len(r.stopCalls)-1] }

const (
	maxSlackDoublings = 8 // so that the slack does not overflow
	hangingCallSlacks = 4 // how many times the slack the rules grant a call that hangs
)

// nextStopBy returns by when the terminator must have made the next call to stop a container, if it has made these. It repeats the
// last call after its return. If that call hangs, the terminator waits for it until a slack after the call's timeout. The slack
// doubles with each earlier call that still hangs, so that few calls hang at the same time.
func (p *podHistory) nextStopBy(calls []*StopCall) time.Time {
	last, earlier := calls[len(calls)-1], calls[:len(calls)-1]
	hanging := 0 // earlier calls that had not returned when the last one was made
	for _, s := range earlier {
		if !s.Returned.HappenedBy(last.Called.At) {
			hanging++
		}
	}
	slack := p.options.StopTimeoutSlack << min(hanging, maxSlackDoublings)
	waitEnd := last.killAt().Add(hangingCallSlacks * slack)
	if last.Returned.HappenedBy(waitEnd) {
		waitEnd = last.Returned.At
	}
	return waitEnd.Add(p.maxRepeatPause())
}

// isRepeatExcused reports whether the terminator has a good reason not to have called again by a time to stop the run of a
// container.
func (p *podHistory) isRepeatExcused(r *runToStop, nextBy time.Time) bool {
	first, last := r.stopCalls[0].Called, r.lastStop().Called
	endedAfterFirst := func(l *List) bool { return l.provesEnd(r.run, first.At) }
	endedAfterLast := func(l *List) bool { return l.provesEnd(r.run, last.At) }
	giveUpAt := times.Later(p.earliestPossibleDeadline(last, r.run), first.At).Add(p.options.GiveUpAfter)
	switch { // each case is a reason
	case p.callerRepeatsStops():
	case !r.usesLists() || p.endProvedByStop(r.run.ID, r.Done): // the success of a call is enough
	case r.Done.HappenedBy(nextBy) || p.closedAt().HappenedBy(nextBy): // nothing is stopped any more
	case !nextBy.Before(giveUpAt):
	case slices.ContainsFunc(p.lists, endedAfterLast):
	case slices.ContainsFunc(p.possiblyNewestLists(last), endedAfterFirst): // the last call was a StopPod call for other containers
	default:
		return false
	}
	return true
}

// nothingIsGivenUpEarly: a container is reported as left running only if Close was called, and as stuck only once
// GiveUpAfter has passed since its deadline.
func (p *podHistory) nothingIsGivenUpEarly() {
	for _, c := range p.results() {
		t := c.termination
		switch c.Outcome {
		case lifecycle.OutcomeLeftRunning:
			if wasClosed := p.closedAt().Before(t.Done); !wasClosed {
				p.addViolation(t.Done.At, "%s(%s) is %s, though nobody has called Close", c.Name, c.ID, c.Outcome)
			}
		case lifecycle.OutcomeRuntimeStuck:
			earliest := p.deadlineOf(c).Add(p.options.GiveUpAfter)
			if t.Done.At.Before(earliest) && !p.mayBeStuckEarly(t) {
				p.addViolation(t.Done.At, "%s(%s) is %s before %v", c.Name, c.ID, c.Outcome, p.sinceStart(earliest))
			}
		default:
		}
	}
}

// result is what a termination has reported about one container.
type result struct {
	lifecycle.ContainerResult

	termination *Termination
}

// results returns what all terminations of the pod have reported about its containers.
func (p *podHistory) results() (results []result) {
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			results = append(results, result{c, t})
		}
	}
	return results
}

// run returns the run of the container that the result is about. Its ID is empty if the container was never listed.
func (r result) run() lifecycle.Container {
	return lifecycle.Container{Name: r.Name, ID: r.ID, Began: r.Began}
}

// deadlineOf returns the deadline that the container of a result had when its termination ended.
func (p *podHistory) deadlineOf(c result) time.Time {
	switch {
	case c.ID == "": // it was never listed
		return c.termination.finalDeadline()
	case p.usesStopPod(): // StopPod stops all containers at the earliest of their deadlines
		return p.earliestPossibleDeadline(c.termination.Done, p.knownRuns...)
	default:
		return p.earliestPossibleDeadline(c.termination.Done, c.run())
	}
}

// mayBeStuckEarly reports whether a termination may report a container as stuck before GiveUpAfter has passed: after a single
// failed call, because its caller repeats the call, or when no list can show the container's end.
func (p *podHistory) mayBeStuckEarly(t *Termination) bool {
	wasForgotten := !t.forgottenAt.IsZero() // then the termination waits for no list
	return p.callerRepeatsStops() || p.cannotList() || wasForgotten
}

// nothingHangs: each termination and each KillContainer call ends, and Close ends all of them at once. Otherwise a caller that
// waits for one pod would lose the time for the others.
func (p *podHistory) nothingHangs() {
	for _, t := range p.terminations {
		p.requireCallEnds("the termination", t.requested(), t.Done)
	}
	for _, request := range p.killContainerCalls {
		if !request.IsPostStart { // the end of PostStart's call is not recorded
			p.requireCallEnds("KillContainer", request.Called, request.Returned)
		}
	}
}

// requireCallEnds adds a violation if a call has not ended in time. GiveUpAfter past the last deadline, the terminator gives up
// what it cannot stop; a pause and calls that hang may delay that. After Close a call must end within cancelSlack. A call that
// has not ended is judged as if it ended now.
func (p *podHistory) requireCallEnds(call string, called, ended Moment) {
	if ended.IsZero() {
		ended.At = time.Now()
	}
	givenUpAt := p.giveUpCountsFrom(called, ended).Add(p.options.GiveUpAfter)
	latest := givenUpAt.Add(maxPause + hangingCallSlacks*p.options.StopTimeoutSlack + cancelSlack)
	if closed := p.closedAt(); !closed.IsZero() {
		latest = times.Earlier(latest, times.Later(closed.At, called.At).Add(cancelSlack))
	}
	if ended.At.After(latest) {
		p.addViolation(latest, "%s, called at %v, has not ended", call, p.sinceStart(called.At))
	}
}

// giveUpCountsFrom returns the time from which GiveUpAfter counts for the pod's last container while a call was in progress: the
// last deadline that any request for the pod has set, because others may stop the same containers. For a container that was
// found later, it is the first call to stop it, unless even this is GiveUpAfter past that deadline.
func (p *podHistory) giveUpCountsFrom(called, ended Moment) time.Time {
	deadline := called.At
	for _, request := range p.stopRequests() {
		if request.Called.Before(ended) {
			deadline = times.Later(deadline, request.Deadline)
		}
	}
	from := deadline
	for _, run := range p.knownRuns {
		calls := p.stopCallsFor(run)
		if len(calls) == 0 {
			continue
		}
		firstStop := calls[0].Called
		if isInTime := !firstStop.At.After(deadline.Add(p.options.GiveUpAfter)); isInTime && firstStop.Before(ended) {
			from = times.Later(from, firstStop.At)
		}
	}
	return from
}
