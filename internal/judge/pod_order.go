package judge

import (
	"slices"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// sidecarsStopLast: before its deadline, a sidecar is not stopped while a container that needs it may run. A container
// may run if it is listed, may have been started since the list, or was named by the caller and not stopped.
// KillContainer ignores the order.
func (p *podHistory) sidecarsStopLast() {
	for _, s := range p.stops {
		if s.ID == "" {
			return // StopPod stops all containers, and orders them itself
		}
		for _, c := range p.candidates(s) {
			isSignalled := slices.ContainsFunc(p.stops, func(earlier *Stop) bool { return earlier.ID == s.ID && earlier.Called.Before(s.Called) })
			isKilled := slices.ContainsFunc(p.kills, func(u *Request) bool { return u.Called.Before(s.Called) && u.Containers[0].ID == c.ID })
			// Not judged: a stop by KillContainer, a repeated stop, one at or after the deadline, and one of an ID that may
			// mean several runs.
			if until := p.earliestDeadline(c, s.Called); isKilled || isSignalled || !s.Called.At.Before(until) || len(p.candidates(s)) > 1 {
				continue
			}
			for _, t := range p.terminations {
				if t.isOneAttempt() || !t.startedAt().Before(s.Called) || t.Done.Before(s.Called) || p.forgottenAt(t.startedAt()).Before(s.Called) {
					continue
				}
				if dependent := p.dependentOf(t, c, s.Called); dependent != "" {
					p.violation("sidecarsStopLast", s.Called.At, "stop(%d) of sidecar %q while %s", s.Seconds, c.ID, dependent)
				}
			}
		}
	}
}

// dependentOf looks for a container that needs the sidecar c and may run at a moment. It returns the container and why
// it counts as running, as in "ID is listed"; "" if there is none.
func (p *podHistory) dependentOf(t *Termination, c lifecycle.Container, at Moment) string {
	sidecar := specOf(t.Pod, c.Name)
	seen, usesList := p.visibleLists(at), t.firstListRequest().Before(at)
	if usesList && len(seen) > 0 {
		for _, other := range seen[0].Running {
			isInAll := !slices.ContainsFunc(seen, func(l *List) bool { return l.lacks(other) })
			if isInAll && !p.isTrustedEnded(other.ID, at) && sidecar.mustOutlive(specOf(t.Pod, other.Name)) {
				return other.ID + " is listed"
			}
		}
	}
	for _, s := range p.starts {
		if !sidecar.mustOutlive(specOf(t.Pod, s.Name)) || !s.Begun.Before(at) || !s.Begun.At.Before(at.At) {
			continue
		}
		if s.Ended.IsZero() || s.Ended.At.After(at.At) {
			return s.Name + " is being started"
		}
		// After Forget, the termination requests no lists.
		isListed := slices.ContainsFunc(seen, func(l *List) bool { return s.Ended.Before(l.Called) })
		if usesList && !isListed && !slices.ContainsFunc(p.forgets, func(u *Request) bool { return !at.Before(u.Called) }) && t.firstListRequest().Before(s.Ended) && s.Ended.At.Before(at.At) {
			return s.Name + " may have been started"
		}
	}
	if usesList {
		return ""
	}
	for _, u := range t.Requests {
		for _, other := range u.Containers {
			isStopped := slices.ContainsFunc(p.stops, func(s *Stop) bool {
				isMissed := slices.ContainsFunc(p.lists, func(l *List) bool { // KillContainer requests lists
					return s.Called.Before(l.Called) && !at.Before(l.Returned) && l.lacks(other)
				})
				return s.ID == other.ID && (s.succeeded() && !at.Before(s.Returned) || isMissed)
			})
			if u.Called.At.Before(at.At) && !isStopped && sidecar.mustOutlive(specOf(t.Pod, other.Name)) {
				return other.ID + " has not been stopped"
			}
		}
	}
	return ""
}
