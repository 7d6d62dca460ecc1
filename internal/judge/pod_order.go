package judge

import (
	"slices"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// sidecarsStopLast: before its deadline, a sidecar is not stopped while a container that needs it may run (KEP-753).
func (p *podHistory) sidecarsStopLast() {
	for _, s := range p.stopCalls {
		if s.isStopPod() || p.mayIgnoreOrder(s) {
			continue
		}
		for _, t := range p.terminations {
			isForgotten := t.forgottenAt.Before(s.Called) // then the terminator does not know what needs the sidecar
			if isForgotten || !t.mayBeInProgress(s.Called) {
				continue
			}
			target := p.possibleTargets(s)[0]
			if dependent := p.runningDependentOf(target, t, s.Called); dependent != "" {
				p.addViolation(s.Called.At, "stop(%d) of sidecar %q while %s", s.Seconds, s.ID, dependent)
			}
		}
	}
}

// mayIgnoreOrder reports whether a StopContainer call may come before other containers have ended, even if these need the
// container.
func (p *podHistory) mayIgnoreOrder(s *StopCall) bool {
	isKill := func(request *Request) bool { return request.target().ID == s.ID && request.Called.Before(s.Called) }
	isEarlier := func(other *StopCall) bool { return other.ID == s.ID && other.Called.Before(s.Called) }
	deadline := p.earliestPossibleDeadline(s.Called, p.possibleTargets(s)...)
	isDue := !s.Called.At.Before(deadline)                         // then the wait for the other containers ends
	wasKilled := slices.ContainsFunc(p.killContainerCalls, isKill) // KillContainer waits for no other container
	wasStopped := slices.ContainsFunc(p.stopCalls, isEarlier)      // this call repeats one that has waited
	return isDue || wasKilled || wasStopped
}

// runningDependentOf returns a container that needs the target, a sidecar, and that a termination must assume to run at a moment.
// The text says why, as in "ID has not ended"; "": nothing that may run needs the target.
func (p *podHistory) runningDependentOf(target lifecycle.Container, t *Termination, now Moment) string {
	sidecar := specOf(t.Pod, target.Name)
	for _, r := range p.runsToStop {
		if r.Termination == t && sidecar.mustOutlive(specOf(t.Pod, r.run.Name)) && p.mustAssumeRuns(r, now) {
			return r.run.ID + " has not ended"
		}
	}
	for _, s := range p.starts {
		if sidecar.mustOutlive(specOf(t.Pod, s.Name)) && p.mustAssumeStarted(s, t, now) {
			return s.Name + " is being started, or was started since the last list"
		}
	}
	return ""
}

// mustAssumeRuns reports whether, at a moment, the termination that has to stop a container must assume that it still runs: it
// knows the container, and no list, stop call or request has told it of the container's end.
func (p *podHistory) mustAssumeRuns(r *runToStop, now Moment) bool {
	isKnown := r.knownSince.At.Before(now.At)
	isMissing := slices.ContainsFunc(p.possiblyNewestLists(now), func(l *List) bool { return l.lacks(r.run) })
	hasEnded := isMissing || p.endProvedByStop(r.run.ID, now) || p.wasLeftOut(r.run.ID, r.knownSince, now)
	return isKnown && !hasEnded
}

// wasLeftOut reports whether a Terminate call between two moments, or in progress at one of them, left the container with this
// ID out of its list of running containers. Such a call tells the terminator that the container has ended. A call without
// a list, for which the terminator asks the runtime, tells it nothing.
func (p *podHistory) wasLeftOut(id string, from, to Moment) bool {
	return slices.ContainsFunc(p.terminations, func(t *Termination) bool {
		return slices.ContainsFunc(t.Requests, func(request *Request) bool {
			isBetween := from.Before(request.Returned) && request.Called.Before(to)
			return isBetween && !request.HasNoList && len(withID(request.Containers, id)) == 0
		})
	})
}

// mustAssumeStarted reports whether, at a moment, a termination must assume that a start has left a container running: the start
// is in progress, or no list since its end has shown what it started.
func (p *podHistory) mustAssumeStarted(s *Start, t *Termination, now Moment) bool {
	hasBegun := s.Begun.Before(now) && s.Begun.At.Before(now.At)
	isInProgress := hasBegun && !s.Ended.HappenedBy(now.At)
	wasListed := slices.ContainsFunc(p.possiblyNewestLists(now), func(l *List) bool { return s.Ended.Before(l.Called) })
	awaitsList := t.usesListsSince().Before(s.Ended) && s.Ended.At.Before(now.At) && !wasListed
	return isInProgress || hasBegun && awaitsList
}
