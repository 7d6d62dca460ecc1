package virtualkubelet

import (
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
)

// errRefused ends a pod's start: Options.Admit has refused the pod.
var errRefused = errors.New("the pod was refused")

// admit asks Options.Admit whether the pod may start. If not, it keeps the answer for the final status and returns
// errRefused. It does not ask for a pod whose termination has begun, because startAll starts nothing of it.
//
// The pod is already in the podTable: a shutdown that begins after Admit has answered lists the pod there and stops it.
func (r *record) admit() error {
	if r.agent.opts.Admit == nil || r.isTerminating() {
		return nil
	}
	pod := r.podWithStatus()
	var answer shutdown.Admission
	if err := r.callSafely("Admit", func() { answer = r.agent.opts.Admit(pod) }); err != nil {
		answer = shutdown.Admission{Reason: reasonUnexpectedAdmission, Message: err.Error()}
	}
	if answer.Admit {
		return nil
	}
	if answer.Reason == "" && answer.Message == "" {
		answer.Reason, answer.Message = reasonUnexpectedAdmission, "Options.Admit has refused the pod without a reason"
		klog.FromContext(r.ctx).Info(answer.Message, "pod", r.name)
	}
	if events := r.agent.opts.Terminator.Events; events != nil {
		_ = r.callSafely("Events", func() { events.Event(pod, v1.EventTypeWarning, answer.Reason, answer.Message) }) // a panic was logged
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending.refusal = &answer
	return errRefused
}

// writeRefusal writes the status that the kubelet gives a pod that was not admitted: Failed, and no containers.
func writeRefusal(status *v1.PodStatus, refusal shutdown.Admission) {
	status.Phase, status.Reason, status.Message = v1.PodFailed, refusal.Reason, "Pod was rejected: "+refusal.Message
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
}
