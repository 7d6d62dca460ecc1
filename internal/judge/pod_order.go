package judge

import (
	"slices"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// sidecarsStopLast: before its deadline, a sidecar is not stopped while a container that needs it may run (KEP-753).
func (p *podHistory) sidecarsStopLast() {
	for _, s := range p.stops {
		if s.isStopPod() || p.isOutOfOrder(s) {
			continue
		}
		for _, t := range p.terminations {
			isForgotten := t.forgotten.Before(s.Called) // then the terminator does not know what needs the sidecar
			if isForgotten || !t.mayBeInProgress(s.Called) {
				continue
			}
			if dependent := p.dependentOf(t, p.candidates(s)[0], s.Called); dependent != "" {
				p.violation(s.Called.At, "stop(%d) of sidecar %q while %s", s.Seconds, s.ID, dependent)
			}
		}
	}
}

// isOutOfOrder reports whether a StopContainer call may be one that need not wait for other containers.
func (p *podHistory) isOutOfOrder(s *Stop) bool {
	isKill := func(request *Request) bool { return request.target().ID == s.ID && request.Called.Before(s.Called) }
	isRepeated := func(earlier *Stop) bool { return s.ID == earlier.ID && earlier.Called.Before(s.Called) }
	switch {
	case !s.Called.At.Before(p.earliestDeadline(s.Called, p.candidates(s)...)): // the wait ends at the deadline
	case slices.ContainsFunc(p.kills, isKill): // KillContainer stops a container at once
	case slices.ContainsFunc(p.stops, isRepeated): // its turn has come already, perhaps in a termination that was forgotten
	default:
		return false
	}
	return true
}

// dependentOf looks for a container that needs the sidecar c, and that a termination must assume to run at a moment, because
// it was listed or named, or is being started. It returns the container and why it may run, as in "ID has not ended"; "": none.
func (p *podHistory) dependentOf(t *Termination, c lifecycle.Container, now Moment) string {
	sidecar := specOf(t.Pod, c.Name)
	for _, d := range p.duties {
		if d.Termination == t && sidecar.mustOutlive(specOf(t.Pod, d.run.Name)) && p.mustBeAssumedToRun(d, now) {
			return d.run.ID + " has not ended"
		}
	}
	for _, s := range p.starts {
		if sidecar.mustOutlive(specOf(t.Pod, s.Name)) && p.mustBeAssumedToStart(t, s, now) {
			return s.Name + " is being started, or was started since the last list"
		}
	}
	return ""
}

// mustBeAssumedToRun reports whether a termination has learned of a run before the time of a moment, and no list, stop or
// caller has said since that the run has ended.
func (p *podHistory) mustBeAssumedToRun(d *duty, now Moment) bool {
	isMissing := slices.ContainsFunc(p.newestLists(now), func(l *List) bool { return l.lacks(d.run) })
	hasEnded := isMissing || p.stopProvedEnd(d.run.ID, now) || p.isUnnamed(d.run.ID, d.since, now)
	return d.since.At.Before(now.At) && !hasEnded
}

// isUnnamed reports whether a Terminate call that was in progress between two moments named the running containers,
// and the ID was not among them.
func (p *podHistory) isUnnamed(id string, from, to Moment) bool {
	return slices.ContainsFunc(p.terminations, func(t *Termination) bool {
		return slices.ContainsFunc(t.Requests, func(request *Request) bool {
			wasInProgress := from.Before(request.Returned) && request.Called.Before(to)
			return wasInProgress && !request.ListsContainers && len(withID(request.Containers, id)) == 0
		})
	})
}

// mustBeAssumedToStart reports whether a start is in progress at a moment, or has started a container that the termination has
// yet to list: the start ended when the termination used lists, and no list that it knows was requested since.
func (p *podHistory) mustBeAssumedToStart(t *Termination, s *Start, now Moment) bool {
	hasBegun := s.Begun.Before(now) && s.Begun.At.Before(now.At)
	hasEnded := s.Ended.By(now.At)
	isListed := slices.ContainsFunc(p.newestLists(now), func(l *List) bool { return s.Ended.Before(l.Called) })
	awaitsList := t.usesListsSince().Before(s.Ended) && s.Ended.At.Before(now.At) && !isListed
	return hasBegun && (!hasEnded || awaitsList)
}
