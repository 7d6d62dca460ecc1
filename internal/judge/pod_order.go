package judge

import (
	"slices"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// sidecarsStopLast: before its deadline, a sidecar is not stopped while a container that needs it may run (KEP-753).
//
// Not judged are stops that are not part of the order: those of KillContainer, repeated ones, those at or after the
// deadline, those of StopPod, which stops all containers, and those of an ID that may mean several runs. Nor are
// terminations with OneAttempt or of a forgotten pod.
func (p *podHistory) sidecarsStopLast() {
	for _, s := range p.stops {
		candidates := p.candidates(s)
		if s.ID == "" || len(candidates) != 1 || p.mayRepeatOrBelongToKill(s) {
			continue
		}
		c := candidates[0]
		if isBeforeDeadline := s.Called.At.Before(p.earliestDeadline(c, s.Called)); !isBeforeDeadline {
			continue
		}
		for _, t := range p.terminations {
			isInProgress := t.startedAt().Before(s.Called) && !t.Done.Before(s.Called)
			if t.isOneAttempt() || !isInProgress || p.isForgotten(t, s.Called) {
				continue
			}
			if dependent := p.dependentOf(t, c, s.Called); dependent != "" {
				p.violation(s.Called.At, "stop(%d) of sidecar %q while %s", s.Seconds, c.ID, dependent)
			}
		}
	}
}

// mayRepeatOrBelongToKill reports whether sidecarsStopLast must leave out the stop s, because s is perhaps not part of the
// order of a termination: s may repeat an earlier stop of its ID, or an earlier KillContainer call for its ID may have made it.
func (p *podHistory) mayRepeatOrBelongToKill(s *Stop) bool {
	isRepeated := slices.ContainsFunc(p.stops, func(earlier *Stop) bool { return earlier.ID == s.ID && earlier.Called.Before(s.Called) })
	isKill := slices.ContainsFunc(p.kills, func(request *Request) bool {
		return request.Containers[0].ID == s.ID && request.Called.Before(s.Called)
	})
	return isRepeated || isKill
}

// dependentOf looks for a container that needs the sidecar c and may run at a moment, because it was listed or named
// (mayRun), or is being started. It returns the container and why it may run, as in "ID has not ended"; "" if there is none.
func (p *podHistory) dependentOf(t *Termination, c lifecycle.Container, at Moment) string {
	sidecar := specOf(t.Pod, c.Name)
	for _, other := range p.known {
		if sidecar.mustOutlive(specOf(t.Pod, other.Name)) && p.mayRun(t, other, at) {
			return other.ID + " has not ended"
		}
	}
	if dependent := p.startingDependent(t, sidecar, at); dependent != "" {
		return dependent + " is being started, or was started since the last list"
	}
	return ""
}

// mayRun reports whether a termination has to stop a run, and must assume at a moment that the run has not ended: all lists
// that it may have seen last have the run, no successful stop proves its end (stopProvedEnd), and no caller has named the
// running containers without it.
func (p *podHistory) mayRun(t *Termination, c lifecycle.Container, at Moment) bool {
	since := p.mustStopSince(t, c)
	mustStop := !since.IsZero() && since.At.Before(at.At)
	isMissing := slices.ContainsFunc(p.visibleLists(at), func(l *List) bool { return l.lacks(c) })
	return mustStop && !isMissing && !p.stopProvedEnd(c.ID, at) && !p.isUnnamed(c.ID, since, at)
}

// startingDependent finds what dependentOf cannot find in a list: it returns the name of a container that needs the
// sidecar and may run although the lists lack it, so that the sidecar must not be stopped yet; "": there is none.
// There are two cases:
//
//   - The container is being started at the moment.
//   - Its start has ended, and no list that the terminator may have seen was requested after that. This case counts
//     only if the termination already used lists then, and the pod is not forgotten: after Forget it requests none.
func (p *podHistory) startingDependent(t *Termination, sidecar spec, at Moment) string {
	wasForgotten := slices.ContainsFunc(p.forgets, func(request *Request) bool { return !at.Before(request.Called) })
	for _, s := range p.starts {
		hasBegun := s.Begun.Before(at) && s.Begun.At.Before(at.At)
		if !hasBegun || !sidecar.mustOutlive(specOf(t.Pod, s.Name)) {
			continue
		}
		isStarting := s.Ended.IsZero() || s.Ended.At.After(at.At)
		needsNewList := t.dependsOnListsBy().Before(s.Ended) && s.Ended.At.Before(at.At) && !wasForgotten
		hasNewList := slices.ContainsFunc(p.visibleLists(at), func(l *List) bool { return s.Ended.Before(l.Called) })
		if isStarting || needsNewList && !hasNewList {
			return s.Name
		}
	}
	return ""
}
