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
// errRefused. There is no need to ask if the pod's termination has begun, because nothing of the pod is then started, or
// if a previous agent has admitted the pod.
//
// The pod is already in the podTable: a shutdown that begins after Admit has answered lists the pod there and stops it.
func (m *managedPod) admit() error {
	m.mu.Lock()
	mustAsk := !m.ending.terminating && !m.workload.wasStarted()
	m.mu.Unlock()
	if m.provider.opts.Admit == nil || !mustAsk {
		return nil
	}
	pod := m.podWithStatus()
	answer := m.callAdmit(pod)
	if answer.Admit {
		return nil
	}
	if events := m.provider.opts.Terminator.Events; events != nil {
		_ = m.callSafely(m.ctx, "Events", func() { events.Event(pod, v1.EventTypeWarning, answer.Reason, answer.Message) }) // a panic was logged
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ending.refusal = &answer
	return errRefused
}

// callAdmit returns the answer of Options.Admit. A panic is a refusal. A refusal without a reason gets one, and is logged.
func (m *managedPod) callAdmit(pod *v1.Pod) (answer shutdown.Admission) {
	if err := m.callSafely(m.ctx, "Admit", func() { answer = m.provider.opts.Admit(pod) }); err != nil { // it has panicked
		return shutdown.Admission{Reason: reasonUnexpectedAdmission, Message: err.Error()}
	}
	hasNoReason := answer.Reason == "" && answer.Message == ""
	if !answer.Admit && hasNoReason {
		answer.Reason, answer.Message = reasonUnexpectedAdmission, "Options.Admit has refused the pod without a reason"
		klog.FromContext(m.ctx).Info(answer.Message, "pod", m.name)
	}
	return answer
}

// writeRefusal writes the status that the kubelet gives a pod that was not admitted: Failed, and no containers.
func writeRefusal(status *v1.PodStatus, refusal shutdown.Admission) {
	status.Phase, status.Reason, status.Message = v1.PodFailed, refusal.Reason, "Pod was rejected: "+refusal.Message
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
}
