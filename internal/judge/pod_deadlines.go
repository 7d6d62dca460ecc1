package judge

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// deadlineOnlyMovesEarlier: the deadline of a termination never moves later. Otherwise a second caller could prolong
// a shutdown that has no more time. Two readings whose calls overlap are not compared.
func (p *podHistory) deadlineOnlyMovesEarlier() {
	for _, t := range p.terminations {
		for i := 1; i < len(t.Readings); i++ {
			previous, reading := t.Readings[i-1], t.Readings[i]
			if previous.Returned.Before(reading.Called) && reading.Deadline.After(previous.Deadline) {
				p.violation(reading.Returned.At, "it moved from %v to %v", p.sinceStart(previous.Deadline), p.sinceStart(reading.Deadline))
			}
		}
	}
}

// deadlineIsEarliestRequested: the deadline of a termination is the earliest one that a caller has requested. A later
// one would ignore a caller, and an earlier one would take time from the pod that nobody wants to take. A request may
// be ignored if it came when the termination had ended, or returned after a Close call.
func (p *podHistory) deadlineIsEarliestRequested() {
	var all []*Request // of all terminations, because one that a late start has begun keeps the deadline of the one before it
	for _, t := range p.terminations {
		all = slices.Concat(all, t.Requests, t.Shortens)
	}
	for _, t := range p.terminations {
		for _, reading := range t.Readings {
			// Not later than any deadline whose request had returned before the reading began.
			for _, request := range t.deadlineRequests() {
				mustCount := request.Returned.Before(reading.Called) && !p.isTooLate(t, request)
				if mustCount && reading.Deadline.After(request.Deadline) {
					p.violation(reading.Returned.At, "it is %v, though %v was requested", p.sinceStart(reading.Deadline), p.sinceStart(request.Deadline))
				}
			}
			// Not earlier than all deadlines that were requested before the reading returned.
			explains := func(request *Request) bool {
				return request.Called.Before(reading.Returned) && !request.Deadline.After(reading.Deadline)
			}
			if !slices.ContainsFunc(all, explains) {
				p.violation(reading.Returned.At, "it is %v, earlier than any request", p.sinceStart(reading.Deadline))
			}
		}
	}
}

// deadlineRequests returns the Terminate and Shorten calls that may move the deadline. A Terminate call without a
// grace period sets the deadline only if it begins the termination. The record does not say which call began the
// termination, so of several Terminate calls those without a grace period are left out.
func (t *Termination) deadlineRequests() (requests []*Request) {
	for _, request := range slices.Concat(t.Requests, t.Shortens) {
		mayHaveJoined := request.HasDefaultGrace && len(t.Requests) > 1
		if !mayHaveJoined {
			requests = append(requests, request)
		}
	}
	return requests
}

// isTooLate reports whether a request may have come too late to move the deadline: when the termination had ended, or when
// Close had been called.
func (p *podHistory) isTooLate(t *Termination, request *Request) bool {
	mayBeAfterEnd := !t.Done.IsZero() && !request.Called.At.Before(t.Done.At)
	mayBeAfterClose := p.closedAt().Before(request.Returned)
	return mayBeAfterEnd || mayBeAfterClose
}

// noKillBeforeDeadline: no container is stopped that nobody has asked to stop, and none is killed before its deadline,
// because it was promised that time.
func (p *podHistory) noKillBeforeDeadline() {
	for _, s := range p.stops {
		if earliest := p.earliestKill(s); earliest.IsZero() || s.killAt().Before(earliest) {
			p.violation(s.Called.At, "stop(%d) of %q kills at %v, its deadline is %v", s.Seconds, s.ID, p.sinceStart(s.killAt()), p.sinceStart(earliest))
		}
	}
}

// earliestKill returns the time before which the call s may not kill; zero: nobody has requested the end of what it stops. A
// StopPod call may kill all containers at the earliest of their deadlines, and a StopContainer call that may mean several
// runs at the earliest of theirs. A StopContainer call may also be for a KillContainer call whose caller means a run that
// no list has had yet. Once a list has been seen that was requested since, the run is one of the candidates.
func (p *podHistory) earliestKill(s *Stop) (earliest time.Time) {
	if s.ID == "" {
		return p.earliestDeadlineOf(p.known, s.Called)
	}
	earliest = p.earliestDeadlineOf(p.candidates(s), s.Called)
	for _, request := range p.kills {
		mayMeanUnlisted := request.Called.Before(s.Called) && !p.hasListSince(request.Called, s.Called)
		if request.Containers[0].ID == s.ID && mayMeanUnlisted {
			earliest = times.Earlier(earliest, request.Deadline)
		}
	}
	return earliest
}

// hasListSince reports whether a decision at the moment at has certainly seen a list that was requested at the moment
// since or later. A list that returned at the very time of the decision does not count, because it may not have been seen.
func (p *podHistory) hasListSince(since, at Moment) bool {
	seen := p.visibleLists(at)
	if len(seen) == 0 {
		return false
	}
	oldest := seen[len(seen)-1] // the only one that may have returned before the time of the decision
	return oldest.Returned.At.Before(at.At) && !oldest.Called.Before(since)
}

// earliestDeadlineOf returns the earliest time before which a call may kill none of several runs; zero: none of them has a
// deadline.
func (p *podHistory) earliestDeadlineOf(runs []lifecycle.Container, called Moment) (earliest time.Time) {
	for _, c := range runs {
		earliest = times.Earlier(earliest, p.earliestDeadline(c, called))
	}
	return earliest
}

// earliestDeadline returns the time before which a run may not be killed by a call that is made at the moment called: the
// earliest deadline that was requested or read before; zero: nobody had requested the end of the run.
func (p *podHistory) earliestDeadline(c lifecycle.Container, called Moment) (earliest time.Time) {
	for _, t := range p.terminations {
		if !p.mayStop(t, c, called) {
			continue
		}
		for _, request := range slices.Concat(t.Requests, t.Shortens) {
			if request.Called.Before(called) {
				earliest = times.Earlier(earliest, request.Deadline)
			}
		}
		for _, r := range t.Readings {
			if r.Returned.Before(called) {
				earliest = times.Earlier(earliest, r.Deadline)
			}
		}
	}
	for _, request := range p.kills {
		if request.Called.Before(called) && request.matches(c) {
			earliest = times.Earlier(earliest, request.Deadline)
		}
	}
	return earliest
}

// mayStop reports whether a termination may be the reason of a call that stops a run:
//   - It names the run's ID, and had not ended when the call was made.
//   - Or the run began before the pod was forgotten and before the termination ended. If a start was in progress when the
//     termination ended, the run may also have begun later: it may be that of the start, which the termination stops, too.
func (p *podHistory) mayStop(t *Termination, c lifecycle.Container, called Moment) bool {
	if t.namesID(c.ID) && !t.Done.Before(called) {
		return true
	}
	if p.wasForgottenBefore(t, c.Began) {
		return false
	}
	beganBeforeEnd := t.Done.IsZero() || !t.Done.At.Before(c.Began)
	hasLateStart := slices.ContainsFunc(p.starts, func(s *Start) bool { return s.Begun.Before(t.Done) && !s.Ended.Before(t.Done) })
	return beganBeforeEnd || hasLateStart
}

// noStopOutlastsDeadlineAndMinimum: no call lets a run live longer than until the deadline that was in force when the
// call was made, plus the 2 s (minimum) that a container has even after its deadline, plus 100 ms (times.Lag), which the
// terminator adds to the remaining time before it rounds that down to seconds. Otherwise a pod would outlast the time that
// its caller has planned for it.
func (p *podHistory) noStopOutlastsDeadlineAndMinimum() {
	for _, c := range p.known {
		for _, s := range p.stopsOf(c) {
			deadline := p.deadlineInForce(c, s)
			latestKill := deadline.Add(minimum + times.Lag)
			if !deadline.IsZero() && s.Seconds > 0 && s.killAt().After(latestKill) {
				p.violation(s.Called.At, "stop(%d) of %q kills at %v, its deadline is %v", s.Seconds, c.ID, p.sinceStart(s.killAt()), p.sinceStart(deadline))
			}
		}
	}
}

// deadlineInForce returns the earliest deadline of the terminations that had to stop a run when the call s was made; zero:
// none had to. There may be several, because another termination may begin after Forget.
func (p *podHistory) deadlineInForce(c lifecycle.Container, s *Stop) (deadline time.Time) {
	for _, t := range p.terminations {
		since := p.mustStopSince(t, c)
		isStopping := !since.IsZero() && since.At.Before(s.Called.At) && !t.Done.By(s.Called.At)
		if isStopping && !p.isForgotten(t, s.Called) {
			deadline = times.Earlier(deadline, t.deadlineBefore(s.Called.At))
		}
	}
	return deadline
}
