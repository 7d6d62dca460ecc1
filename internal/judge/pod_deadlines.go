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
			isOrderUnknown := reading.Called.Before(previous.Returned) // the two calls of Deadline overlap
			if !isOrderUnknown && reading.Deadline.After(previous.Deadline) {
				p.addViolation(reading.Returned.At, "it moved from %v to %v", p.sinceStart(previous.Deadline), p.sinceStart(reading.Deadline))
			}
		}
	}
}

// deadlineIsEarliestRequested: the deadline of a termination is the earliest one that a caller has requested. A later one
// would ignore a caller, and an earlier one would kill the pod before anybody wants that.
func (p *podHistory) deadlineIsEarliestRequested() {
	for _, t := range p.terminations {
		for _, reading := range t.Readings {
			for _, request := range t.deadlineRequests() {
				mustCount := request.Returned.Before(reading.Called) && !p.mayHaveNoEffect(t, request)
				if mustCount && reading.Deadline.After(request.Deadline) {
					p.addViolation(reading.Returned.At, "it is %v, though %v was requested", p.sinceStart(reading.Deadline), p.sinceStart(request.Deadline))
				}
			}
			if !p.wasRequested(reading) {
				p.addViolation(reading.Returned.At, "it is %v, earlier than any request", p.sinceStart(reading.Deadline))
			}
		}
	}
}

// mayHaveNoEffect reports whether a request may have come too late to move the deadline of a termination: after the termination's
// end, or after Close.
func (p *podHistory) mayHaveNoEffect(t *Termination, request *Request) bool {
	return t.Done.HappenedBy(request.Called.At) || p.closedAt().Before(request.Returned)
}

// wasRequested reports whether somebody had requested the deadline that was read, or an earlier one. Requests for all
// terminations of the pod count: a termination that a Start call has begun keeps the deadline of the previous one.
func (p *podHistory) wasRequested(reading Reading) bool {
	return slices.ContainsFunc(p.terminations, func(t *Termination) bool {
		return slices.ContainsFunc(t.deadlineRequests(), func(request *Request) bool {
			return request.Called.Before(reading.Returned) && !request.Deadline.After(reading.Deadline)
		})
	})
}

// noKillBeforeDeadline: no container is stopped unless a request wants that, and none is killed before its deadline, because it
// was promised that time.
func (p *podHistory) noKillBeforeDeadline() {
	for _, s := range p.stopCalls {
		earliest := p.earliestKillTime(s)
		if isUnwanted := earliest.IsZero(); isUnwanted || s.killAt().Before(earliest) {
			p.addViolation(s.Called.At, "stop(%d) of %q kills at %v, its deadline is %v", s.Seconds, s.ID, p.sinceStart(s.killAt()), p.sinceStart(earliest))
		}
	}
}

// earliestKillTime returns the time before which a stop call may not kill: the earliest deadline of the containers that it may
// stop; zero: no request wanted any of them stopped.
func (p *podHistory) earliestKillTime(s *StopCall) time.Time {
	if s.isStopPod() {
		return p.earliestPossibleDeadline(s.Called, p.knownRuns...)
	}
	return p.earliestPossibleDeadline(s.Called, p.possibleTargets(s)...)
}

// earliestPossibleDeadline returns the earliest deadline that a termination or KillContainer may have given, before a moment, to
// one of several runs of containers; zero: no request wanted any of them stopped.
func (p *podHistory) earliestPossibleDeadline(now Moment, runs ...lifecycle.Container) (earliest time.Time) {
	for _, run := range runs {
		for _, t := range p.terminations {
			if p.mayCauseStop(t, run) {
				earliest = times.Earlier(earliest, t.earliestPossibleDeadline(now))
			}
		}
		for _, request := range p.killContainerCalls {
			if request.Called.Before(now) && request.mayTarget(run) {
				earliest = times.Earlier(earliest, request.Deadline)
			}
		}
	}
	return earliest
}

// mayCauseStop reports whether a termination may be the reason why a run of a container is stopped, because the run began in time.
func (p *podHistory) mayCauseStop(t *Termination, run lifecycle.Container) bool {
	beganAfterEnd := !t.Done.IsZero() && t.Done.At.Before(run.Began)
	switch {
	case p.wasForgotten(t, run.Began): // the termination stops no containers that it learns of after Forget
		return false
	case beganAfterEnd: // only if a start was in progress at the end, and this is the container that it has started
		return slices.ContainsFunc(p.starts, func(s *Start) bool { return t.Done.isBetween(s.Begun, s.Ended) })
	default:
		return true
	}
}

// noStopOutlastsDeadlineAndMinimum: the timeout of a stop call ends at most minimumTimeout after the container's deadline, because
// the caller has planned no more time for the pod. times.Lag is allowed, too: the terminator adds it to the remaining time before
// it rounds down to seconds. A call with 0 s kills at once, and may come at any time.
func (p *podHistory) noStopOutlastsDeadlineAndMinimum() {
	for _, r := range p.runsToStop {
		for _, s := range r.stopCalls {
			deadline := r.deadlineInForceBefore(s.Called.At)
			isKilledLate := s.Seconds > 0 && s.killAt().After(deadline.Add(minimumTimeout+times.Lag))
			if r.mustBeStoppedAt(s.Called) && !deadline.IsZero() && isKilledLate {
				p.addViolation(s.Called.At, "stop(%d) of %q kills at %v, its deadline is %v", s.Seconds, r.run.ID, p.sinceStart(s.killAt()), p.sinceStart(deadline))
			}
		}
	}
}

// mustBeStoppedAt reports whether the termination certainly had to stop the run at a moment: it had learned of the run, had not
// ended, and Forget had not been called.
func (r *runToStop) mustBeStoppedAt(now Moment) bool {
	isKnown := r.knownSince.At.Before(now.At)
	return isKnown && !r.Done.HappenedBy(now.At) && !r.forgottenAt.Before(now)
}
