package judge

import (
	"errors"
	"slices"
)

// noStartAfterTermination: no container is started by a Start call that comes after a Terminate call has returned, because
// nothing would stop it. Only Forget allows starts again.
func (p *podHistory) noStartAfterTermination() {
	for _, s := range p.starts {
		for _, t := range p.terminations {
			mustRefuse := t.returned().Before(s.Called) && !t.forgotten.Before(s.Begun)
			if wasStarted := !s.Begun.IsZero(); wasStarted && mustRefuse && !p.mayRestart(s, t) {
				p.violation(s.Begun.At, "%s is started, the pod was terminated at %v", s.Name, p.sinceStart(t.called().At))
			}
		}
	}
}

// mayRestart reports whether a start is that of a sidecar, which may start again until the deadline of a termination in
// progress (KEP-4438).
func (p *podHistory) mayRestart(s *Start, terminated *Termination) bool {
	isSidecar := specOf(terminated.Pod, s.Name).kind == sidecar
	return isSidecar && slices.ContainsFunc(p.terminations, func(t *Termination) bool {
		deadline := t.deadlineInForce(s.Begun.At.Add(1)) // Add(1): requests at that very time count, too
		return t.called().Before(s.Begun) && !t.Done.Before(s.Called) && !s.Begun.At.After(deadline)
	})
}

// lateStartsAreStopped: if a start began before the pod's termination and ended after the termination had begun, what it
// has left running is listed and stopped before Start returns, because nobody else knows of it.
func (p *podHistory) lateStartsAreStopped() {
	for _, s := range p.starts {
		for _, t := range p.terminations {
			isLate := t.called().isBetween(s.Begun, s.Ended) && t.forgotten.IsZero()
			if isLate && p.mustClean(s) {
				p.requireStopped(s)
			}
		}
	}
}

// mustClean reports whether a Start call must itself stop what it has left running.
func (p *podHistory) mustClean(s *Start) bool {
	hasReturned := !s.Ended.IsZero() && !s.Returned.IsZero() && !errors.Is(s.Err, errDidNotReturn)
	return hasReturned && !p.isCleanedByOther(s)
}

// isCleanedByOther reports whether somebody else stops what a start has left running: a termination that began before Start
// returned and had not ended when the start did, or another start that ended earlier and had not returned by then.
func (p *podHistory) isCleanedByOther(s *Start) bool {
	isByTermination := func(t *Termination) bool {
		return !t.BegunByStart && t.called().Before(s.Returned) && !t.Done.Before(s.Ended)
	}
	isByStart := func(other *Start) bool { return other != s && s.Ended.isBetween(other.Ended, other.Returned) }
	return slices.ContainsFunc(p.terminations, isByTermination) || slices.ContainsFunc(p.starts, isByStart)
}

// requireStopped records a violation if no list was requested between the end of a start and the return of the Start call,
// or if such a list has a container that was not stopped. A container need not be stopped, or even listed, if the result says
// that it may still run.
func (p *podHistory) requireStopped(s *Start) {
	isBetween := func(l *List) bool { return s.Ended.Before(l.Called) && l.Returned.Before(s.Returned) }
	left := notEnded(s.Result)
	if len(left) == 0 && !slices.ContainsFunc(p.lists, isBetween) {
		p.violation(s.Returned.At, "Start(%s) returned, but no list was requested", s.Name)
	}
	for _, l := range p.lists {
		for _, c := range l.Running {
			isLeft, wasStopped := len(withID(left, c.ID)) > 0, len(p.stopsOf(c)) > 0
			if isBetween(l) && !wasStopped && !isLeft {
				p.violation(s.Returned.At, "Start(%s) returned, but %q was not stopped", s.Name, c.ID)
			}
		}
	}
}
