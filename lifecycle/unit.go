package lifecycle

import (
	"context"
	"slices"
	"time"
)

// containerUnit is a group of containers that one StopPod call stops together. Their hooks run in parallel. After
// the last hook, or at the deadline, the goroutine of one member makes the call, and the others wait for
// it. The pod's mutex guards the fields.
type containerUnit struct {
	members  []*containerStop
	previous *containerUnit // earlier containers of the same pod, which must have stopped first; nil: none
	ready    chan struct{}  // closed when all hooks have ended
	claimed  bool           // a member makes the calls; containers that are listed later join the next unit
	done     chan struct{}  // closed after the calls; the fields below are then valid
	outcome  Outcome
	err      error
	duration time.Duration // from the first call to the end
}

// joinableUnit returns the unit that a new stop joins, that is, the containers that the same StopPod call stops:
// the newest unit, or a new one if StopPod may already have been called for the newest. It returns nil if
// containers stop one by one, without a PodStopper. The caller holds the mutex.
func (p *podState) joinableUnit() *containerUnit {
	if p.terminator.opts.Pods == nil {
		return nil
	}
	if p.unit == nil || p.unit.claimed || isClosed(p.unit.ready) {
		p.unit = &containerUnit{previous: p.unit, ready: make(chan struct{}), done: make(chan struct{})}
	}
	return p.unit
}

// stopUntilEnded stops the unit, a group of containers that one StopPod call stops together, and returns its
// outcome. Each container's goroutine calls it, with its stop s, when its hook has ended or the deadline has
// passed. The first one past the wait for the hooks makes the StopPod calls, and the others wait for the outcome.
// If the terminator is closed before that, the outcome is OutcomeLeftRunning.
func (u *containerUnit) stopUntilEnded(s *containerStop) (Outcome, error) {
	if !u.waitForHooks(s) {
		return OutcomeLeftRunning, nil
	}
	calls := u.claim(s)
	if calls == nil { // the goroutine of another container makes the calls
		select {
		case <-u.done:
		case <-s.ctx.Done():
			return OutcomeLeftRunning, nil
		}
		s.pod.mu.Lock()
		defer s.pod.mu.Unlock()
		s.result.Stopping = u.duration
		return u.outcome, u.err
	}
	outcome, err := calls.stopUntilEnded()
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	u.outcome, u.err, u.duration = outcome, err, time.Since(s.firstCallAt)
	s.result.Stopping = u.duration
	close(u.done)
	return outcome, err
}

// waitForHooks waits for the hooks of all containers of the unit, at most until the deadline. Then it waits for
// the StopPod calls of the previous unit, the containers of the same pod that were listed earlier, so that the
// calls for a pod do not overlap. It returns whether the unit may be stopped: false if the terminator was closed.
// s is the stop that waits.
func (u *containerUnit) waitForHooks(s *containerStop) (mayStop bool) {
	s.pod.mu.Lock()
	s.result.Phase = PhaseWaiting
	if u.hooksHaveEnded() && !isClosed(u.ready) {
		close(u.ready)
	}
	previous := u.previous
	s.pod.mu.Unlock()
	select {
	case <-u.ready:
	case <-s.expired:
	case <-s.ctx.Done():
	}
	if previous != nil {
		select {
		case <-previous.done:
		case <-s.ctx.Done():
		}
	}
	return s.ctx.Err() == nil
}

// hooksHaveEnded reports whether the hooks of all members have ended, so that only StopPod remains. A member
// enters PhaseWaiting when its hook has ended. The caller holds the mutex.
func (u *containerUnit) hooksHaveEnded() bool {
	return !slices.ContainsFunc(u.members, func(s *containerStop) bool { return s.result.Phase != PhaseWaiting })
}

// claim returns the StopPod calls to the first container's stop that asks, which must make them for all
// containers of the unit; nil to all others. The unit no longer needs the previous one then. claim locks the mutex.
func (u *containerUnit) claim(s *containerStop) *stopCalls {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	s.result.Phase = PhaseStopping
	if u.claimed {
		return nil
	}
	u.claimed, u.previous = true, nil
	apiPod := s.apiPod // begin may change it before StopPod is called
	return &stopCalls{containerStop: s, runs: u.members, call: func(ctx context.Context, seconds int64) error {
		return s.pod.terminator.opts.Pods.StopPod(ctx, apiPod, seconds)
	}}
}
