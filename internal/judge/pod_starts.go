package judge

import (
	"errors"
	"slices"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// noStartAfterTermination: no container is started by a Start call that comes after a Terminate call has returned,
// because nothing would stop it. A termination that a start began which returned late (IsForLateStart) refuses no start,
// because no Terminate call has begun it. Sidecars are an exception: they may restart until the deadline of a termination
// in progress (KEP-4438). After Forget every container of the pod may start again.
func (p *podHistory) noStartAfterTermination() {
	for _, s := range p.starts {
		if wasStarted := !s.Begun.IsZero(); !wasStarted {
			continue
		}
		isInProgress := func(other *Termination) bool { // at the time of the start
			hasTime := !s.Begun.At.After(other.deadlineBefore(s.Begun.At.Add(1))) // Add(1): requests at that very time count, too
			return other.startedAt().Before(s.Begun) && !other.Done.Before(s.Called) && hasTime
		}
		for _, t := range p.terminations {
			isByTerminate := !t.IsForLateStart // otherwise Requests may be empty
			mustRefuse := isByTerminate && t.Requests[0].Returned.Before(s.Called) && !p.isForgotten(t, s.Begun)
			mayRestart := specOf(t.Pod, s.Name).kind == sidecar && slices.ContainsFunc(p.terminations, isInProgress)
			if mustRefuse && !mayRestart {
				p.violation(s.Begun.At, "%s is started, the pod was terminated at %v", s.Name, p.sinceStart(t.startedAt().At))
			}
		}
	}
}

// lateStartsAreStopped: if a start began before the pod's termination and ended after the termination had begun, what it
// has left running is listed and stopped before Start returns, because nobody else knows of it. There need be no list if
// the result says that a container could not be stopped, and no stop if it says so of that container. Not judged are
//   - a start after which another termination or another late start may clean up (isStoppedByOthers),
//   - a start that has not returned, that ended its goroutine, or that returned after Close,
//   - a start during a termination that does not list, or whose pod was forgotten.
func (p *podHistory) lateStartsAreStopped() {
	for _, s := range p.starts {
		isOver := !s.Ended.IsZero() && !s.Returned.IsZero() && !errors.Is(s.Err, errDidNotReturn)
		if !isOver || p.isStoppedByOthers(s) || p.closedAt().Before(s.Returned) {
			continue
		}
		for _, t := range p.terminations {
			wasStarting := s.Begun.Before(t.startedAt()) && t.startedAt().Before(s.Ended) // when the termination began
			if !t.IsForLateStart && t.usesList() && wasStarting && !p.wasForgotten(t) {
				p.requireStopped(s)
			}
		}
	}
}

// requireStopped records a violation if no list was requested between the end of a start and the return of the Start call,
// or if such a list has a container that was not stopped. See lateStartsAreStopped for the exceptions.
func (p *podHistory) requireStopped(s *Start) {
	var lists []*List
	for _, l := range p.lists {
		if s.Ended.Before(l.Called) && l.Returned.Before(s.Returned) {
			lists = append(lists, l)
		}
	}
	var givenUp []lifecycle.ContainerResult
	if s.Result != nil {
		givenUp = slices.DeleteFunc(slices.Clone(s.Result.Containers), func(c lifecycle.ContainerResult) bool { return hasEnded(c.Outcome) })
	}
	if len(lists) == 0 && len(givenUp) == 0 {
		p.violation(s.Returned.At, "Start(%s) returned, but no list was requested", s.Name)
	}
	for _, l := range lists {
		for _, c := range l.Running {
			isGivenUp := slices.ContainsFunc(givenUp, func(r lifecycle.ContainerResult) bool { return r.ID == c.ID })
			if wasStopped := len(p.stopsOf(c)) > 0; !wasStopped && !isGivenUp {
				p.violation(s.Returned.At, "Start(%s) returned, but %q was not stopped", s.Name, c.ID)
			}
		}
	}
}

// isStoppedByOthers reports whether somebody else stops what a start has left running: a termination that began
// before Start returned and had not ended when the start did, or another start that ended earlier and had not
// returned by then.
func (p *podHistory) isStoppedByOthers(s *Start) bool {
	isByTermination := slices.ContainsFunc(p.terminations, func(t *Termination) bool {
		return !t.IsForLateStart && t.startedAt().Before(s.Returned) && !t.Done.Before(s.Ended)
	})
	return isByTermination || slices.ContainsFunc(p.starts, func(other *Start) bool {
		return other != s && other.Ended.Before(s.Ended) && !other.Returned.Before(s.Ended)
	})
}
