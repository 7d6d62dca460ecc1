package lifecycle

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// podStop stops several containers of a pod together, by StopPod calls. Their hooks run in parallel. After
// the last hook, or at the deadline, the goroutine of one container makes the calls, and the others wait for
// it. The pod's mutex guards the fields.
type podStop struct {
	members  []*containerStop
	previous *podStop // of earlier containers of the same pod, which must have stopped first; nil: none
	begun    bool     // a member makes the calls; containers that are listed later need another podStop
	outcome  Outcome  // "" until the calls have ended
	err      error
}

// joinPodStop returns the podStop to which a new stop of a container belongs: the newest one, or a new one if
// StopPod may already have been called for the newest. It returns nil if containers stop one by one, without a
// PodStopper. The caller holds the mutex.
func (p *podState) joinPodStop(s *containerStop) *podStop {
	if p.terminator.opts.Pods == nil {
		return nil
	}
	mayJoinNewest := p.podStop != nil && !p.podStop.begun && p.podStop.runsHooks()
	if !mayJoinNewest {
		p.podStop = &podStop{previous: p.podStop}
	}
	p.podStop.members = append(p.podStop.members, s)
	return p.podStop
}

// stopUntilEnded stops the containers and returns their outcome. Each container's goroutine calls it, with its stop
// s, when its hook has ended or the deadline has passed. The first goroutine that gets past the wait for the hooks
// makes the StopPod calls, and the others wait for the outcome. If the terminator is closed before they know it, the
// outcome is OutcomeLeftRunning.
func (p *podStop) stopUntilEnded(s *containerStop) (Outcome, error) {
	p.waitForHooks(s)
	if s.ctx.Err() != nil {
		return OutcomeLeftRunning, nil
	}
	if calls := p.begin(s); calls != nil { // this goroutine is the first one
		outcome, err := calls.stopUntilEnded()
		s.pod.mu.Lock()
		p.outcome, p.err = outcome, err
		s.pod.wake()
		s.pod.mu.Unlock()
	}
	// Wait for the outcome, which another goroutine may have to find out.
	s.pod.waitWhile(s.ctx, func() (wait bool, never time.Time) { return p.outcome == "" && s.ctx.Err() == nil, never })
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	return cmp.Or(p.outcome, OutcomeLeftRunning), p.err
}

// waitForHooks waits for the hooks of all members, at most until the deadline. It also waits for the end of the
// previous podStop, which stops containers of the pod that were listed earlier, so that the StopPod calls for a pod do
// not overlap. s is the stop that waits.
func (p *podStop) waitForHooks(s *containerStop) {
	s.setPhase(PhaseWaiting)
	s.pod.waitWhile(s.ctx, func() (wait bool, recheckAt time.Time) {
		waitsForHooks := !p.begun && p.runsHooks() && !s.deadline.hasPassed()
		waitsForCalls := p.previous != nil && p.previous.outcome == ""
		return (waitsForHooks || waitsForCalls) && s.ctx.Err() == nil, s.deadline.end
	})
}

// runsHooks reports whether the hook of a member has not ended: the member has not entered PhaseWaiting yet. The caller
// holds the mutex.
func (p *podStop) runsHooks() bool {
	return slices.ContainsFunc(p.members, func(s *containerStop) bool { return s.result.Phase != PhaseWaiting })
}

// begin is called by each member when its wait for the hooks is over. It returns the stopCalls for all members to the first
// one, which must carry them out, and nil to the others. It locks the mutex.
func (p *podStop) begin(s *containerStop) *stopCalls {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	s.result.Phase = PhaseStopping
	if p.begun {
		return nil
	}
	p.begun = true
	p.previous = nil   // it has ended (waitForHooks): a chain of old ones must not stay in memory
	apiPod := s.apiPod // containerStop.begin may change it before StopPod is called
	stopPod := func(ctx context.Context, seconds int64) error {
		return s.pod.terminator.opts.Pods.StopPod(ctx, apiPod, seconds)
	}
	return &stopCalls{containerStop: s, targets: p.members, call: stopPod}
}
