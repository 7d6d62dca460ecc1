package judge

import (
	"errors"
	"slices"
)

// noStartAfterTermination: a Start call starts no container once a Terminate call has returned, because nothing would stop
// it. A sidecar may start again, and after Forget all containers may.
func (p *podHistory) noStartAfterTermination() {
	for _, s := range p.starts {
		for _, t := range p.terminations {
			wasStarted := !s.Begun.IsZero()
			isForbidden := t.certainlyBegun().Before(s.Called) && !t.forgottenAt.Before(s.Begun)
			if wasStarted && isForbidden && !p.mayStartAgain(s, t) {
				p.addViolation(s.Begun.At, "%s is started, the pod was terminated at %v", s.Name, p.sinceStart(t.requested().At))
			}
		}
	}
}

// mayStartAgain reports whether a container may start although its pod was terminated: it is a sidecar, which may start again
// until the deadline of a termination in progress (KEP-4438).
func (p *podHistory) mayStartAgain(s *Start, terminated *Termination) bool {
	isSidecar := specOf(terminated.Pod, s.Name).kind == sidecar
	return isSidecar && slices.ContainsFunc(p.terminations, func(t *Termination) bool {
		isInProgress := t.requested().Before(s.Begun) && !t.Done.Before(s.Called)
		deadline := t.deadlineInForceBefore(s.Begun.At.Add(1)) // Add(1): requests at that very time count, too
		return isInProgress && !s.Begun.At.After(deadline)
	})
}

// lateStartsAreStopped: if a pod is terminated while a container is being started, the Start call stops what the start has left
// running before it returns, because nobody else knows of that.
func (p *podHistory) lateStartsAreStopped() {
	for _, s := range p.starts {
		for _, t := range p.terminations {
			isLate := t.requested().isBetween(s.Begun, s.Ended) && t.forgottenAt.IsZero()
			if isLate && p.mustStopLeftovers(s) {
				p.requireLeftoversStopped(s)
			}
		}
	}
}

// mustStopLeftovers reports whether a Start call must stop what the start has left running, because it has returned normally and
// nobody else does it.
func (p *podHistory) mustStopLeftovers(s *Start) bool {
	hasReturned := !s.Ended.IsZero() && !s.Returned.IsZero() && !errors.Is(s.Err, errDidNotReturn)
	return hasReturned && !p.othersStopLeftovers(s)
}

// othersStopLeftovers reports whether somebody else stops what a start has left running: a termination that is in progress when
// the start ends or begins before Start returns, or another Start call that is doing the same for a start that ended earlier.
func (p *podHistory) othersStopLeftovers(s *Start) bool {
	doesTermination := func(t *Termination) bool {
		return !t.BegunByStart && t.requested().Before(s.Returned) && !t.Done.Before(s.Ended)
	}
	doesStart := func(other *Start) bool { return other != s && s.Ended.isBetween(other.Ended, other.Returned) }
	return slices.ContainsFunc(p.terminations, doesTermination) || slices.ContainsFunc(p.starts, doesStart)
}

// requireLeftoversStopped adds a violation if a Start call has returned before it had the pod's containers listed after the
// start, or if a listed container was not stopped. The result of the call may instead say that a container was left running.
func (p *podHistory) requireLeftoversStopped(s *Start) {
	isOfCall := func(l *List) bool { return s.Ended.Before(l.Called) && l.Returned.Before(s.Returned) }
	left := notEnded(s.Result)
	if len(left) == 0 && !slices.ContainsFunc(p.lists, isOfCall) {
		p.addViolation(s.Returned.At, "Start(%s) returned, but no list was requested", s.Name)
	}
	for _, l := range p.lists {
		for _, run := range l.Running {
			isLeft, wasStopped := len(withID(left, run.ID)) > 0, len(p.stopCallsFor(run)) > 0
			if isOfCall(l) && !wasStopped && !isLeft {
				p.addViolation(s.Returned.At, "Start(%s) returned, but %q was not stopped", s.Name, run.ID)
			}
		}
	}
}
