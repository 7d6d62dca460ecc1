package judge

import (
	"slices"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// sidecarsStopLast: before its deadline, a sidecar is not stopped while a container that needs it may run (KEP-753).
//
// Stops that are not part of the order are not judged: those of KillContainer, repeated ones, those at or after the
// deadline, those of StopPod, which stops all containers, and those of an ID that may mean several runs.
func (p *podHistory) sidecarsStopLast() {
	for _, s := range p.stops {
		candidates := p.candidates(s)
		if s.ID == "" || len(candidates) != 1 || p.isRepeatedOrByKill(s) {
			continue
		}
		c := candidates[0]
		if !s.Called.At.Before(p.earliestDeadline(c, s.Called)) {
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

// isRepeatedOrByKill reports whether a call may repeat an earlier one, or be that of KillContainer.
func (p *podHistory) isRepeatedOrByKill(s *Stop) bool {
	isRepeated := slices.ContainsFunc(p.stops, func(earlier *Stop) bool { return earlier.ID == s.ID && earlier.Called.Before(s.Called) })
	isKill := slices.ContainsFunc(p.kills, func(u *Request) bool { return u.Containers[0].ID == s.ID && u.Called.Before(s.Called) })
	return isRepeated || isKill
}

// dependentOf looks for a container that needs the sidecar c and may run at a moment: a list of the termination has it, a
// start of it is newer than the lists, or the caller has named it and it was not stopped. It returns the container and why
// it counts as running, as in "ID is listed"; "" if there is none.
func (p *podHistory) dependentOf(t *Termination, c lifecycle.Container, at Moment) string {
	sidecar := specOf(t.Pod, c.Name)
	usesList := t.firstListRequest().Before(at)
	if other := p.listedDependent(t, sidecar, at); usesList && other != "" {
		return other + " is listed"
	}
	if other := p.startingDependent(t, sidecar, at); other != "" {
		return other + " is being started, or was started since the last list"
	}
	if other := p.namedDependent(t, sidecar, at); !usesList && other != "" {
		return other + " has not been stopped"
	}
	return ""
}

// listedDependent returns a container that needs a sidecar, and that each list has which the termination may have seen
// last; "": there is none.
func (p *podHistory) listedDependent(t *Termination, sidecar spec, at Moment) string {
	seen := p.visibleLists(at)
	if len(seen) == 0 || !t.firstListRequest().Before(seen[len(seen)-1].Called) {
		return "" // the termination may have seen no list
	}
	for _, other := range seen[0].Running {
		isInAll := !slices.ContainsFunc(seen, func(l *List) bool { return l.lacks(other) })
		if isInAll && !p.isTrustedEnded(other.ID, at) && sidecar.mustOutlive(specOf(t.Pod, other.Name)) {
			return other.ID
		}
	}
	return ""
}

// startingDependent returns a container that needs a sidecar, and that is being started or was started after the last
// list was requested; "": there is none.
func (p *podHistory) startingDependent(t *Termination, sidecar spec, at Moment) string {
	wasForgotten := slices.ContainsFunc(p.forgets, func(u *Request) bool { return !at.Before(u.Called) }) // then no lists are requested
	for _, s := range p.starts {
		hasBegun := s.Begun.Before(at) && s.Begun.At.Before(at.At)
		if !hasBegun || !sidecar.mustOutlive(specOf(t.Pod, s.Name)) {
			continue
		}
		isStarting := s.Ended.IsZero() || s.Ended.At.After(at.At)
		mustList := t.firstListRequest().Before(s.Ended) && s.Ended.At.Before(at.At) && !wasForgotten
		isListed := slices.ContainsFunc(p.visibleLists(at), func(l *List) bool { return s.Ended.Before(l.Called) })
		if isStarting || mustList && !isListed {
			return s.Name
		}
	}
	return ""
}

// namedDependent returns a container that needs a sidecar, and that the caller has named and the terminator has not
// stopped; "": there is none.
func (p *podHistory) namedDependent(t *Termination, sidecar spec, at Moment) string {
	for _, u := range t.Requests {
		for _, other := range u.Containers {
			isStopped := slices.ContainsFunc(p.stops, func(s *Stop) bool {
				hasSucceeded := s.succeeded() && !at.Before(s.Returned)
				isMissed := slices.ContainsFunc(p.lists, func(l *List) bool { // KillContainer requests lists
					return s.Called.Before(l.Called) && !at.Before(l.Returned) && l.lacks(other)
				})
				return s.ID == other.ID && (hasSucceeded || isMissed)
			})
			if u.Called.At.Before(at.At) && !isStopped && sidecar.mustOutlive(specOf(t.Pod, other.Name)) {
				return other.ID
			}
		}
	}
	return ""
}
