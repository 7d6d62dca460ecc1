package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
)

// admit calls Options.Admit and reports whether the pod may start. The pod is already in the podTable, so
// that a shutdown that begins after the answer finds it. A refused pod ends.
func (s *starter) admit() bool {
	if s.opts.Admit == nil || s.r.isTerminating() {
		return true
	}
	pod := s.r.view()
	answered := make(chan shutdown.Admission, 1)
	s.spawn(s.r.name, func() {
		var answer shutdown.Admission
		if err := s.r.safely("Admit", func() { answer = s.opts.Admit(pod) }); err != nil {
			answer = shutdown.Admission{Reason: reasonUnexpectedAdmission, Message: err.Error()}
		}
		answered <- answer
	})
	var answer shutdown.Admission
	select {
	case answer = <-answered:
	case <-s.r.active.Done(): // terminating or closed: no answer is needed
		return !s.isClosed()
	}
	if answer.Admit {
		return true
	}
	if answer.Reason == "" && answer.Message == "" {
		answer.Reason, answer.Message = reasonUnexpectedAdmission, "Options.Admit has refused the pod without a reason"
		klog.FromContext(s.r.ctx).Info(answer.Message, "pod", s.r.name)
	}
	if events := s.opts.Terminator.Events; events != nil {
		_ = s.r.safely("Events", func() { events.Event(pod, v1.EventTypeWarning, answer.Reason, answer.Message) }) // a panic was logged
	}
	s.r.mu.Lock()
	s.r.ending.starting, s.r.ending.refusal = false, &answer
	s.r.mu.Unlock()
	s.r.ender.endCompleted()
	s.r.ender.finalize()
	return false
}

// refuse writes the kubelet's status of a pod that was not admitted.
func refuse(status *v1.PodStatus, why shutdown.Admission) {
	status.Phase, status.Reason, status.Message = v1.PodFailed, why.Reason, "Pod was rejected: "+why.Message
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
}
