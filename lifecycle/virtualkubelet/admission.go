package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
)

// admit asks Options.Admit whether the pod may start, and ends a pod that is refused. The pod is already in the
// podTable: a shutdown that begins after Admit has answered lists the pod there and stops it.
func (s *starter) admit() bool {
	if s.opts.Admit == nil || s.r.isTerminating() {
		return true
	}
	pod := s.r.podWithStatus()
	answered := make(chan shutdown.Admission, 1)
	s.spawn(s.r.name, func() {
		var answer shutdown.Admission
		if err := s.r.callSafely("Admit", func() { answer = s.opts.Admit(pod) }); err != nil {
			answer = shutdown.Admission{Reason: reasonUnexpectedAdmission, Message: err.Error()}
		}
		answered <- answer
	})
	var answer shutdown.Admission
	select {
	case answer = <-answered:
	case <-s.r.active.Done(): // terminating or closed: the answer no longer matters
		return !s.isClosed() // true: startAll then starts nothing, because the pod is terminating
	}
	if answer.Admit {
		return true
	}
	if answer.Reason == "" && answer.Message == "" {
		answer.Reason, answer.Message = reasonUnexpectedAdmission, "Options.Admit has refused the pod without a reason"
		klog.FromContext(s.r.ctx).Info(answer.Message, "pod", s.r.name)
	}
	if events := s.opts.Terminator.Events; events != nil {
		_ = s.r.callSafely("Events", func() { events.Event(pod, v1.EventTypeWarning, answer.Reason, answer.Message) }) // a panic was logged
	}
	s.r.mu.Lock()
	s.r.ending.starting, s.r.ending.refusal = false, &answer
	s.r.mu.Unlock()
	s.r.ender.terminateRemaining()
	s.r.ender.finalizeIfEnded()
	return false
}

// writeRefusal writes the status that the kubelet gives a pod that was not admitted: Failed, and no containers.
func writeRefusal(status *v1.PodStatus, why shutdown.Admission) {
	status.Phase, status.Reason, status.Message = v1.PodFailed, why.Reason, "Pod was rejected: "+why.Message
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
}
