package judge

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// deadlineOnlyMovesEarlier: the deadline of a termination never moves later. Otherwise a second caller could prolong
// a shutdown that has no more time.
func (p *podHistory) deadlineOnlyMovesEarlier() {
	for _, t := range p.terminations {
		for i := 1; i < len(t.Readings); i++ {
			previous, reading := t.Readings[i-1], t.Readings[i]
			overlap := reading.Called.Before(previous.Returned) // which of them read first is then unknown
			if !overlap && reading.Deadline.After(previous.Deadline) {
				p.violation(reading.Returned.At, "it moved from %v to %v", p.sinceStart(previous.Deadline), p.sinceStart(reading.Deadline))
			}
		}
	}
}

// deadlineIsEarliestRequested: the deadline of a termination is the earliest one that a caller has requested. A later one
// would ignore a caller, and an earlier one would take time from the pod that nobody wants to take.
func (p *podHistory) deadlineIsEarliestRequested() {
	for _, t := range p.terminations {
		for _, reading := range t.Readings {
			for _, request := range t.deadlineRequests() {
				mustCount := request.Returned.Before(reading.Called) && !p.mayBeTooLate(t, request)
				if mustCount && reading.Deadline.After(request.Deadline) {
					p.violation(reading.Returned.At, "it is %v, though %v was requested", p.sinceStart(reading.Deadline), p.sinceStart(request.Deadline))
				}
			}
			if !p.wasRequested(reading) {
				p.violation(reading.Returned.At, "it is %v, earlier than any request", p.sinceStart(reading.Deadline))
			}
		}
	}
}

// mayBeTooLate reports whether a request may have come too late to move the deadline: after the end of the termination, or
// after Close.
func (p *podHistory) mayBeTooLate(t *Termination, request *Request) bool {
	return t.Done.By(request.Called.At) || p.closedAt().Before(request.Returned)
}

// wasRequested reports whether somebody had requested a deadline that was read, or an earlier one. Requests for any
// termination of the pod count: a termination that a Start call has begun keeps the deadline of the one before it.
func (p *podHistory) wasRequested(reading Reading) bool {
	return slices.ContainsFunc(p.terminations, func(t *Termination) bool {
		return slices.ContainsFunc(t.deadlineRequests(), func(request *Request) bool {
			return request.Called.Before(reading.Returned) && !request.Deadline.After(reading.Deadline)
		})
	})
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

// earliestKill returns the time before which a stop may not kill: the earliest deadline of what it may stop; zero: nobody had
// requested the end of that.
func (p *podHistory) earliestKill(s *Stop) (earliest time.Time) {
	if s.isStopPod() {
		return p.earliestDeadline(s.Called, p.known...)
	}
	return p.earliestDeadline(s.Called, p.candidates(s)...)
}

// earliestDeadline returns the time before which none of several runs may be killed at a moment: the earliest deadline that a
// termination or KillContainer may have given one of them; zero: nobody had requested the end of any.
func (p *podHistory) earliestDeadline(now Moment, runs ...lifecycle.Container) (earliest time.Time) {
	for _, c := range runs {
		for _, t := range p.terminations {
			if p.mayStop(t, c) {
				earliest = times.Earlier(earliest, t.possibleDeadline(now))
			}
		}
		for _, request := range p.kills {
			if request.Called.Before(now) && request.mayMean(c) {
				earliest = times.Earlier(earliest, request.Deadline)
			}
		}
	}
	return earliest
}

// mayStop reports whether a termination may be the reason for a stop of a run, because the run began in time.
func (p *podHistory) mayStop(t *Termination, c lifecycle.Container) bool {
	switch {
	case p.wasForgotten(t, c.Began): // from then on it got no new containers
		return false
	case !t.Done.IsZero() && t.Done.At.Before(c.Began): // the run can only be that of a start that was in progress at the end
		return slices.ContainsFunc(p.starts, func(s *Start) bool { return t.Done.isBetween(s.Begun, s.Ended) })
	default:
		return true
	}
}

// noStopOutlastsDeadlineAndMinimum: no call lets a run live longer than until the deadline that was in force when the
// call was made, plus the 2 s (minimum) that a container has even after its deadline, plus 100 ms (times.Lag), which the
// terminator adds to the remaining time before it rounds that down to seconds. Otherwise a pod would outlast the time that
// its caller has planned for it.
func (p *podHistory) noStopOutlastsDeadlineAndMinimum() {
	for _, d := range p.duties {
		for _, s := range d.stops {
			deadline := d.deadlineInForce(s.Called.At)
			isKilledLate := s.Seconds > 0 && s.killAt().After(deadline.Add(minimum+times.Lag))
			if d.appliesAt(s.Called) && !deadline.IsZero() && isKilledLate {
				p.violation(s.Called.At, "stop(%d) of %q kills at %v, its deadline is %v", s.Seconds, d.run.ID, p.sinceStart(s.killAt()), p.sinceStart(deadline))
			}
		}
	}
}

// appliesAt reports whether the termination certainly had to stop the run at a moment: it had learned of the run, had not
// ended, and was not forgotten. What happened at the very time of the moment may have come later.
func (d *duty) appliesAt(now Moment) bool {
	return d.since.At.Before(now.At) && !d.Done.By(now.At) && !d.forgotten.Before(now)
}
