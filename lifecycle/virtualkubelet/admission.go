package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
)

// admit asks Options.Admit whether the pod may start. It returns false if the caller has nothing left to do: the pod was
// refused, and admit has ended it, or the provider is closed.
//
// It also returns true, without an answer, if the pod's termination has begun: startAll then starts nothing, and the pod
// ends.
//
// The pod is already in the podTable: a shutdown that begins after Admit has answered lists the pod there and stops it.
func (r *record) admit() (goOn bool) {
	if r.agent.opts.Admit == nil || r.isTerminating() {
		return true
	}
	pod := r.podWithStatus()
	answered := make(chan shutdown.Admission, 1)
	r.agent.spawn(r.name, func() {
		var answer shutdown.Admission
		if err := r.callSafely("Admit", func() { answer = r.agent.opts.Admit(pod) }); err != nil {
			answer = shutdown.Admission{Reason: reasonUnexpectedAdmission, Message: err.Error()}
		}
		answered <- answer
	})
	var answer shutdown.Admission
	select {
	case answer = <-answered:
	case <-r.active.Done(): // terminating: startAll ends the pod; closed: nobody does
		return !r.agent.isClosed()
	}
	if answer.Admit {
		return true
	}
	if answer.Reason == "" && answer.Message == "" {
		answer.Reason, answer.Message = reasonUnexpectedAdmission, "Options.Admit has refused the pod without a reason"
		klog.FromContext(r.ctx).Info(answer.Message, "pod", r.name)
	}
	if events := r.agent.opts.Terminator.Events; events != nil {
		_ = r.callSafely("Events", func() { events.Event(pod, v1.EventTypeWarning, answer.Reason, answer.Message) }) // a panic was logged
	}
	r.mu.Lock()
	r.ending.startInProgress, r.ending.refusal = false, &answer
	r.mu.Unlock()
	r.terminateRemaining()
	r.finalizeIfEnded()
	return false
}

// writeRefusal writes the status that the kubelet gives a pod that was not admitted: Failed, and no containers.
func writeRefusal(status *v1.PodStatus, refusal shutdown.Admission) {
	status.Phase, status.Reason, status.Message = v1.PodFailed, refusal.Reason, "Pod was rejected: "+refusal.Message
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
}
