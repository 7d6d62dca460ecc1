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

// mayRepeatOrBelongToKill reports whether s is perhaps not part of a termination's order: it may repeat an earlier stop
// with its ID, or an earlier KillContainer call for that ID may have made it.
func (p *podHistory) mayRepeatOrBelongToKill(s *Stop) bool {
	isRepeated := slices.ContainsFunc(p.stops, func(earlier *Stop) bool { return earlier.ID == s.ID && earlier.Called.Before(s.Called) })
	isKill := slices.ContainsFunc(p.kills, func(request *Request) bool {
		return request.Containers[0].ID == s.ID && request.Called.Before(s.Called)
	})
	return isRepeated || isKill
}

// dependentOf looks for a container that needs the sidecar c and may run at a moment: a list of the termination has it, a
// start of it is newer than the lists, or the caller has named it and it was not stopped. It returns the container and why
// it counts as running, as in "ID is listed"; "" if there is none.
func (p *podHistory) dependentOf(t *Termination, c lifecycle.Container, at Moment) string {
	sidecar := specOf(t.Pod, c.Name)
	usesList := t.firstListRequest().Before(at)
	if dependent := p.listedDependent(t, sidecar, at); usesList && dependent != "" {
		return dependent + " is listed"
	}
	if dependent := p.startingDependent(t, sidecar, at); dependent != "" {
		return dependent + " is being started, or was started since the last list"
	}
	if dependent := p.namedDependent(t, sidecar, at); !usesList && dependent != "" {
		return dependent + " has not been stopped"
	}
	return ""
}

// listedDependent returns the ID of a container that certainly needs the sidecar at a moment; "": there is none. It is not
// known which of the newest lists the termination has seen by then (visibleLists), so a container counts only if all of
// them have it. It does not count if a successful stop proves its end (isTrustedEnded), or if since these lists the caller
// has named it no more.
func (p *podHistory) listedDependent(t *Termination, sidecar spec, at Moment) string {
	seen := p.visibleLists(at)
	if len(seen) == 0 || !t.firstListRequest().Before(seen[len(seen)-1].Called) {
		return "" // the termination may have seen no list that it requested
	}
	oldest := seen[len(seen)-1].Returned
	for _, other := range seen[0].Running {
		isInAll := !slices.ContainsFunc(seen, func(l *List) bool { return l.lacks(other) })
		hasEnded := p.isTrustedEnded(other.ID, at) || p.isNamedNoMore(t, other, oldest, at)
		if isInAll && !hasEnded && sidecar.mustOutlive(specOf(t.Pod, other.Name)) {
			return other.ID
		}
	}
	return ""
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
		mustList := t.firstListRequest().Before(s.Ended) && s.Ended.At.Before(at.At) && !wasForgotten
		isListed := slices.ContainsFunc(p.visibleLists(at), func(l *List) bool { return s.Ended.Before(l.Called) })
		if isStarting || mustList && !isListed {
			return s.Name
		}
	}
	return ""
}

// namedDependent returns the ID of a container that needs the sidecar, that a Terminate call has named, and that may
// still run at a moment; "": there is none. A named container has ended if a stop of it has succeeded, if a list
// that was requested after a stop lacks it, or if the caller names it no more.
func (p *podHistory) namedDependent(t *Termination, sidecar spec, at Moment) string {
	for _, request := range t.Requests {
		for _, other := range request.Containers {
			isStopped := slices.ContainsFunc(p.stops, func(s *Stop) bool {
				hasSucceeded := s.succeeded() && !at.Before(s.Returned)
				isMissing := slices.ContainsFunc(p.lists, func(l *List) bool { // KillContainer requests lists
					return s.Called.Before(l.Called) && !at.Before(l.Returned) && l.lacks(other)
				})
				return s.ID == other.ID && (hasSucceeded || isMissing)
			})
			if request.Called.At.Before(at.At) && !isStopped && !p.isNamedNoMore(t, other, Moment{}, at) && sidecar.mustOutlive(specOf(t.Pod, other.Name)) {
				return other.ID
			}
		}
	}
	return ""
}

// isNamedNoMore reports whether a Terminate call between two moments has named the containers to stop without c, after all
// stops of c had returned. Such a call names every container that runs (lifecycle.Request.Containers), so c has ended. A
// zero since counts all calls before at.
func (p *podHistory) isNamedNoMore(t *Termination, c lifecycle.Container, since, at Moment) bool {
	return slices.ContainsFunc(t.Requests, func(request *Request) bool {
		isNamed := slices.ContainsFunc(request.Containers, func(named lifecycle.Container) bool { return named.ID == c.ID })
		isBetween := (since.IsZero() || since.Before(request.Called)) && request.Called.Before(at)
		if request.ListsContainers || isNamed || !isBetween {
			return false
		}
		wasStopped := false
		for _, s := range p.stops {
			if s.ID != c.ID || !s.Called.Before(request.Called) {
				continue
			}
			if wasStopped = s.Returned.Before(request.Called); !wasStopped {
				return false
			}
		}
		return wasStopped
	})
}
