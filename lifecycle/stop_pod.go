package lifecycle

import (
	"context"
	"slices"
	"time"
)

// podStop stops several containers of a pod together, by StopPod calls. Their hooks run in parallel. After
// the last hook, or at the deadline, the goroutine of one container makes the calls, and the others wait for
// it. The pod's mutex guards the fields.
type podStop struct {
	members    []*containerStop
	previous   *podStop      // of earlier containers of the same pod, which must have stopped first; nil: none
	hooksEnded chan struct{} // closed when the hooks of all members have ended
	begun      bool          // a member makes the calls; containers that are listed later need another podStop
	done       chan struct{} // closed after the calls; the fields below are then valid
	outcome    Outcome
	err        error
	duration   time.Duration // from the first call to the end
}

// joinPodStop returns the podStop to which a new stop of a container belongs: the newest one, or a new one if
// StopPod may already have been called for the newest. It returns nil if containers stop one by one, without a
// PodStopper. The caller holds the mutex.
func (p *podState) joinPodStop(s *containerStop) *podStop {
	if p.terminator.opts.Pods == nil {
		return nil
	}
	if p.podStop == nil || p.podStop.begun || isClosed(p.podStop.hooksEnded) {
		p.podStop = &podStop{previous: p.podStop, hooksEnded: make(chan struct{}), done: make(chan struct{})}
	}
	p.podStop.members = append(p.podStop.members, s)
	return p.podStop
}

// stopUntilEnded stops the containers and returns their outcome. Each container's goroutine calls it, with its stop
// s, when its hook has ended or the deadline has passed. The first goroutine that gets past the wait for the hooks
// makes the StopPod calls, and the others wait for the outcome. If the terminator is closed before they know it, the
// outcome is OutcomeLeftRunning.
func (p *podStop) stopUntilEnded(s *containerStop) (Outcome, error) {
	if !p.waitForHooks(s) {
		return OutcomeLeftRunning, nil
	}
	calls := p.begin(s)
	if calls == nil { // the goroutine of another container makes the calls
		select {
		case <-p.done:
		case <-s.ctx.Done():
			return OutcomeLeftRunning, nil
		}
		s.pod.mu.Lock()
		defer s.pod.mu.Unlock()
		s.result.Stopping = p.duration
		return p.outcome, p.err
	}
	outcome, err := calls.stopUntilEnded()
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	p.outcome, p.err, p.duration = outcome, err, time.Since(s.firstCallAt)
	s.result.Stopping = p.duration
	close(p.done)
	return outcome, err
}

// waitForHooks waits for the hooks of all members, at most until the deadline. Then it waits for the end of the
// previous podStop, which stops containers of the pod that were listed earlier, so that the StopPod calls for a pod do
// not overlap. mayStop is false if the terminator was closed. s is the stop that waits.
func (p *podStop) waitForHooks(s *containerStop) (mayStop bool) {
	s.pod.mu.Lock()
	s.result.Phase = PhaseWaiting
	if p.hooksHaveEnded() && !isClosed(p.hooksEnded) {
		close(p.hooksEnded)
	}
	previous := p.previous
	s.pod.mu.Unlock()
	select {
	case <-p.hooksEnded:
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

// hooksHaveEnded reports whether the hooks of all members have ended. A member enters PhaseWaiting when its hook has
// ended. The caller holds the mutex.
func (p *podStop) hooksHaveEnded() bool {
	return !slices.ContainsFunc(p.members, func(s *containerStop) bool { return s.result.Phase != PhaseWaiting })
}

// begin returns the StopPod calls for all members to the first stop that asks; that stop must make them. It returns nil
// to all others. begin locks the mutex.
func (p *podStop) begin(s *containerStop) *stopCalls {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	s.result.Phase = PhaseStopping
	if p.begun {
		return nil
	}
	p.begun, p.previous = true, nil
	apiPod := s.apiPod // containerStop.begin may change it before StopPod is called
	return &stopCalls{containerStop: s, targets: p.members, call: func(ctx context.Context, seconds int64) error {
		return s.pod.terminator.opts.Pods.StopPod(ctx, apiPod, seconds)
	}}
}
