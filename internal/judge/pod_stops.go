package judge

import (
	"math"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// everyRunIsStoppedByItsDeadline: for each run that a termination has to stop there was a call that stops it by the deadline
// (latestStop has the exceptions) or, if the termination learned of the run after the deadline, at that moment. The call's
// timeout ended at most 2 s after that time or, if it was made later, after the call: a container always gets these 2 s. Neither
// a slow hook nor the order of containers, the runtime or an event recorder may delay the call, because nothing else ends the
// run.
func (p *podHistory) everyRunIsStoppedByItsDeadline() {
	for _, d := range p.duties {
		latest := p.latestStop(d)
		isStopped := slices.ContainsFunc(d.stops, func(s *Stop) bool {
			latestKill := times.Later(d.due(), s.Called.At).Add(minimum + times.Lag)
			return s.Called.By(latest) && !s.killAt().After(latestKill)
		})
		if !isStopped && !p.needsNoStop(d, latest) {
			p.violation(latest, "no StopContainer call kills %q by %v", d.run.ID, p.sinceStart(d.due().Add(minimum)))
		}
	}
}

// latestStop returns the latest time of the stop that everyRunIsStoppedByItsDeadline demands. The stop is due then or, if an
// earlier one did not end the run, a list and a pause later. A StopPod call also waits for the end of the StopPod calls for
// containers that were known earlier.
func (p *podHistory) latestStop(d *duty) time.Time {
	due, known := d.due(), p.firstKnown(d.run)
	var earlier []*Stop // the StopPod calls for containers that were known earlier
	for _, s := range p.stops {
		if s.isStopPod() && s.Called.Before(known) {
			earlier = append(earlier, s)
		}
	}
	switch {
	case len(earlier) > 0:
		return times.Later(due.Add(p.repeatPause()), p.repeatBy(earlier))
	case slices.ContainsFunc(d.stops, func(s *Stop) bool { return s.Returned.By(due) }):
		return due.Add(p.repeatPause())
	default:
		return due
	}
}

// needsNoStop reports whether the run need not have been stopped by a time.
func (p *podHistory) needsNoStop(d *duty, latest time.Time) bool {
	end := Moment{At: latest, Order: math.MaxInt} // after everything else at that time
	switch {
	case p.isOneAttempt(): // the caller repeats failed stops
	case d.Done.By(latest) || p.closedAt().By(latest): // nothing is stopped any more
	case p.stopProvedEnd(d.run.ID, end):
	case d.usesLists() && !p.staysListed(d.run, latest): // it may have ended
	case !latest.Before(p.earliestDeadline(end, d.run).Add(p.options.GiveUpAfter)): // it is given up
	default:
		return false
	}
	return true
}

// staysListed reports whether a run was listed, and all later lists that returned by a time have it too.
func (p *podHistory) staysListed(c lifecycle.Container, end time.Time) bool {
	first := p.firstListed(c)
	isMissing := func(l *List) bool { return first.Before(l.Returned) && l.Returned.By(end) && l.lacks(c) }
	return !first.IsZero() && !slices.ContainsFunc(p.lists, isMissing)
}

// repeatPause returns how long a list and the pause before the next call may take.
func (p *podHistory) repeatPause() time.Duration { return maxPause + 2*p.options.StopTimeoutSlack }

// failedStopsAreRepeated: while a run is not known to have ended, it is stopped again, each time after a pause and a list. A
// runtime that fails for a while must not cost the node a container that runs on.
func (p *podHistory) failedStopsAreRepeated() {
	for _, d := range p.duties {
		if len(d.stops) == 0 {
			continue
		}
		if nextBy := p.repeatBy(d.stops); !p.needsNoRepeat(d, nextBy) {
			p.violation(nextBy, "%q was last stopped at %v, and not again", d.run.ID, p.sinceStart(d.lastStop().Called.At))
		}
	}
}

// lastStop returns the last stop of the run; there must be one.
func (d *duty) lastStop() *Stop { return d.stops[len(d.stops)-1] }

// repeatBy returns by when the terminator has called again to stop a run, if stops are its calls so far. Before the next
// call come a pause and a list (repeatPause), which begin when the last call has returned. If that call hangs, the
// terminator waits for it until StopTimeoutSlack after the call's timeout. This slack doubles with each earlier call that
// still hangs, so that few calls hang at the same time. repeatBy allows four times the slack.
func (p *podHistory) repeatBy(stops []*Stop) time.Time {
	last, earlier := stops[len(stops)-1], stops[:len(stops)-1]
	hanging := 0 // how many earlier calls had not returned when the last one was made
	for _, s := range earlier {
		if !s.Returned.By(last.Called.At) { // a hanging call returns when its stop ends
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

// needsNoRepeat reports whether the run need not be stopped again by a time.
func (p *podHistory) needsNoRepeat(d *duty, nextBy time.Time) bool {
	first, last := d.stops[0].Called, d.lastStop().Called
	showsEnd := func(l *List) bool { return l.provesEnd(d.run, last.At) }
	showedEnd := func(l *List) bool { return l.provesEnd(d.run, first.At) }
	giveUpAt := times.Later(p.earliestDeadline(last, d.run), first.At).Add(p.options.GiveUpAfter)
	switch {
	case p.isOneAttempt(): // the caller repeats failed stops
	case !d.usesLists() || p.stopProvedEnd(d.run.ID, d.Done): // the success of the stop is enough
	case d.Done.By(nextBy) || p.closedAt().By(nextBy): // nothing is stopped any more
	case !nextBy.Before(giveUpAt):
	case slices.ContainsFunc(p.lists, showsEnd):
	case slices.ContainsFunc(p.newestLists(last), showedEnd): // the last call was a StopPod call for other containers
	default:
		return false
	}
	return true
}

// nothingIsGivenUpEarly: a container is reported as left running only if Close was called, and as stuck only once
// GiveUpAfter has passed since its deadline.
func (p *podHistory) nothingIsGivenUpEarly() {
	for _, c := range p.results() {
		switch c.Outcome {
		case lifecycle.OutcomeLeftRunning:
			if !p.closedAt().Before(c.termination.Done) {
				p.violation(c.termination.Done.At, "%s(%s) is %s, though nobody has called Close", c.Name, c.ID, c.Outcome)
			}
		case lifecycle.OutcomeRuntimeStuck:
			earliest := p.resultDeadline(c).Add(p.options.GiveUpAfter)
			if c.termination.Done.At.Before(earliest) && !p.mayBeStuckEarly(c.termination) {
				p.violation(c.termination.Done.At, "%s(%s) is %s before %v", c.Name, c.ID, c.Outcome, p.sinceStart(earliest))
			}
		default:
		}
	}
}

// result is what a termination has reported for a container.
type result struct {
	lifecycle.ContainerResult

	termination *Termination
}

// results returns what all terminations of the pod have reported.
func (p *podHistory) results() (results []result) {
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			results = append(results, result{c, t})
		}
	}
	return results
}

// run returns the run of the result. Its ID is empty if the result is of a container that was never listed.
func (r result) run() lifecycle.Container {
	return lifecycle.Container{Name: r.Name, ID: r.ID, Began: r.Began}
}

// resultDeadline returns the deadline that a container had when its termination ended.
func (p *podHistory) resultDeadline(c result) time.Time {
	switch {
	case c.ID == "":
		return c.termination.lastDeadline()
	case p.stopsAsUnit(): // StopPod stops all containers at the earliest of their deadlines
		return p.earliestDeadline(c.termination.Done, p.known...)
	default:
		return p.earliestDeadline(c.termination.Done, c.run())
	}
}

// mayBeStuckEarly reports whether a container may be stuck before GiveUpAfter.
func (p *podHistory) mayBeStuckEarly(t *Termination) bool {
	switch {
	case p.isOneAttempt(): // one failure is enough: the caller repeats the stop
	case p.cannotList(), !t.forgotten.IsZero(): // so the termination need not wait for a list
	default:
		return false
	}
	return true
}

// nothingHangs: each termination and each KillContainer call ends, and Close ends all of them at once. A caller that waits
// longer would take the time of the other pods. PostStart's own calls are not judged: their end is not recorded.
func (p *podHistory) nothingHangs() {
	for _, t := range p.terminations {
		p.requireEnd("the termination", t.called(), t.Done)
	}
	for _, request := range p.kills {
		if !request.IsPostStart {
			p.requireEnd("KillContainer", request.Called, request.Returned)
		}
	}
}

// requireEnd records a violation if a call has not ended in time. It has GiveUpAfter past the last deadline and past the first
// stop of each run, and the time of a pause and of calls that hang. After Close it must end within cancelSlack. A call that has
// not ended is judged as if it ended now.
func (p *podHistory) requireEnd(call string, called, ended Moment) {
	if ended.IsZero() {
		ended.At = time.Now()
	}
	end := p.lastBeginning(called, ended).Add(p.options.GiveUpAfter + maxPause + 4*p.options.StopTimeoutSlack + cancelSlack)
	if closed := p.closedAt(); !closed.IsZero() {
		end = times.Earlier(end, times.Later(closed.At, called.At).Add(cancelSlack))
	}
	if ended.At.After(end) {
		p.violation(end, "%s, called at %v, has not ended", call, p.sinceStart(called.At))
	}
}

// lastBeginning returns from when the pod's last container has GiveUpAfter: from the last deadline that a request for the pod
// has set before a call ended (all count, because others may stop the same containers), or from the first stop of a run that was
// listed later, but no later than GiveUpAfter past that deadline.
func (p *podHistory) lastBeginning(called, ended Moment) time.Time {
	deadline := called.At
	for _, request := range p.stopRequests() {
		if request.Called.Before(ended) {
			deadline = times.Later(deadline, request.Deadline)
		}
	}
	last := deadline
	for _, run := range p.known {
		stops := p.stopsOf(run)
		if len(stops) > 0 && stops[0].Called.Before(ended) && !stops[0].Called.At.After(deadline.Add(p.options.GiveUpAfter)) {
			last = times.Later(last, stops[0].Called.At)
		}
	}
	return last
}
