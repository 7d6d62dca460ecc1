package judge

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// deadlineIsEarliestRequested: a pod has one deadline: the earliest one requested. It only moves
// earlier.
func (p *podHistory) deadlineIsEarliestRequested() {
	var requests []*Request // of all terminations: one for a late start keeps the previous deadline
	for _, t := range p.terminations {
		requests = slices.Concat(requests, t.Requests, t.Shortens)
	}
	for _, t := range p.terminations {
		for i, reading := range t.Readings {
			if i > 0 && reading.Deadline.After(t.Readings[i-1].Deadline) && t.Readings[i-1].Before(reading.Called) {
				p.violation("deadlineOnlyMovesEarlier", reading.At, "it moved from %v to %v", p.since(t.Readings[i-1].Deadline), p.since(reading.Deadline))
			}
			for _, u := range slices.Concat(t.Requests, t.Shortens) {
				if u.HasDefaultGrace && len(t.Requests) > 1 {
					continue // a request without a grace period joins, and does not shorten
				}
				wasInProgress := t.Done.IsZero() || u.Called.At.Before(t.Done.At)
				isInTime := wasInProgress && !p.closedAt().Before(u.Returned)
				if isInTime && u.Returned.Before(reading.Called) && reading.Deadline.After(u.Deadline) {
					p.violation("deadlineIsEarliestRequested", reading.At, "it is %v, though %v was requested", p.since(reading.Deadline), p.since(u.Deadline))
				}
			}
			if !slices.ContainsFunc(requests, func(u *Request) bool { return u.Called.Before(reading.Moment) && !u.Deadline.After(reading.Deadline) }) {
				p.violation("deadlineIsEarliestRequested", reading.At, "it is %v, earlier than any request", p.since(reading.Deadline))
			}
		}
	}
}

// noKillBeforeDeadline: no run is killed before its deadline, or stopped without a request.
func (p *podHistory) noKillBeforeDeadline() {
	for _, s := range p.stops {
		earliest := p.earliestKill(s)
		seen := p.visibleLists(s.Called)
		for _, u := range p.kills { // no later list shows another run with the ID
			if u.Containers[0].ID == s.ID && u.Called.Before(s.Called) && (len(seen) == 0 || seen[len(seen)-1].Called.Before(u.Called)) {
				earliest = times.Earlier(earliest, u.Deadline)
			}
		}
		switch {
		case earliest.IsZero():
			p.violation("noStopWithoutRequest", s.Called.At, "stop(%d) of %q", s.Seconds, s.ID)
		case s.killAt().Before(earliest):
			p.violation("noKillBeforeDeadline", s.Called.At, "stop(%d) of %q kills at %v, its deadline is %v", s.Seconds, s.ID, p.since(s.killAt()), p.since(earliest))
		}
	}
}

// earliestKill returns the time before which a call may not kill. A StopPod call may kill all containers at the
// earliest of their deadlines.
func (p *podHistory) earliestKill(s *Stop) (earliest time.Time) {
	targets := p.candidates(s)
	if s.ID == "" { // a StopPod call
		targets = p.known
	}
	for _, c := range targets {
		earliest = times.Earlier(earliest, p.earliestDeadline(c, s.Called))
	}
	return earliest
}

// earliestDeadline returns the time before which a run may not be killed by a call: the earliest deadline that was
// requested before the call. It is zero if nobody had requested the end of the run.
func (p *podHistory) earliestDeadline(c lifecycle.Container, called Moment) (earliest time.Time) {
	for _, t := range p.terminations {
		isNamed := t.namesID(c.ID) && !t.Done.Before(called) // stops any run with the ID
		if forgotten := p.forgottenAt(t.startedAt()); !isNamed && !forgotten.IsZero() && forgotten.At.Before(c.Began) {
			continue
		}
		hasLateStart := slices.ContainsFunc(p.starts, func(s *Start) bool {
			return s.Begun.Before(t.Done) && !s.Ended.Before(t.Done)
		})
		if !isNamed && !t.Done.IsZero() && t.Done.At.Before(c.Began) && !hasLateStart {
			continue
		}
		for _, u := range slices.Concat(t.Requests, t.Shortens) {
			if u.Called.Before(called) {
				earliest = times.Earlier(earliest, u.Deadline)
			}
		}
		for _, r := range t.Readings {
			if r.Before(called) {
				earliest = times.Earlier(earliest, r.Deadline)
			}
		}
	}
	for _, u := range p.kills {
		if u.Called.Before(called) && u.matches(c) {
			earliest = times.Earlier(earliest, u.Deadline)
		}
	}
	return earliest
}

// noStopOutlastsDeadlineAndMinimum: no call gives a run more time than until its deadline, plus the minimum of 2 s
// that a container has even after its deadline.
func (p *podHistory) noStopOutlastsDeadlineAndMinimum() {
	for _, c := range p.known {
		for _, s := range p.stopsOf(c) {
			var until time.Time
			for _, t := range p.terminations {
				since := p.includedAt(t, c)
				if p.forgottenAt(t.startedAt()).Before(s.Called) {
					continue
				}
				if !since.IsZero() && since.At.Before(s.Called.At) && !t.Done.By(s.Called.At) {
					until = times.Earlier(until, t.deadlineBefore(s.Called.At))
				}
			}
			if !until.IsZero() && s.Seconds > 0 && s.killAt().After(until.Add(minimum+times.Lag)) {
				p.violation("noStopOutlastsDeadlineAndMinimum", s.Called.At, "stop(%d) of %q kills at %v, its deadline is %v", s.Seconds, c.ID, p.since(s.killAt()), p.since(until))
			}
		}
	}
}
