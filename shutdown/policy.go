package shutdown

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/internal/staticpod"
)

const (
	// TerminatedReason is the reason of a pod that a node shutdown has ended: the
	// kubelet's nodeShutdownReason.
	TerminatedReason = "Terminated"
	// TerminatedMessage is the kubelet's nodeShutdownMessage, of the pod and of its
	// DisruptionTarget condition.
	TerminatedMessage = "Pod was terminated in response to imminent node shutdown."
)

// PodPolicy says what becomes of the status of pods that a shutdown has killed.
type PodPolicy string

const (
	// PolicySetTerminal makes them Failed unless they are Succeeded, with the
	// kubelet's reason, message and DisruptionTarget condition. The default.
	PolicySetTerminal PodPolicy = "SetTerminal"
	// PolicyLeaveAsIs leaves the status alone, for a node that comes back with the
	// same pods. Pods that were deleted before do not, and get that of PolicySetTerminal.
	PolicyLeaveAsIs PodPolicy = "LeaveAsIs"
	// PolicyDelete sets the status as PolicySetTerminal does and has the Reporter
	// remove the pods then, as a drain would: static pods and those of a DaemonSet are
	// left as they are.
	PolicyDelete PodPolicy = "Delete"
)

// known tells whether it is one of the policies.
func (p PodPolicy) known() bool {
	return p == PolicySetTerminal || p == PolicyLeaveAsIs || p == PolicyDelete
}

// of is the policy for one pod: a drain (kubectl's) deletes neither mirror pods
// nor those of a DaemonSet, which would be made again for the same node. A pod that was
// deleted before does not come back, so there is nothing to leave as it is.
func (p PodPolicy) of(pod *v1.Pod) PodPolicy {
	if p == PolicyDelete && (staticpod.IsOrMirrors(pod) || ofDaemonSet(pod)) {
		p = PolicyLeaveAsIs
	}
	if p == PolicyLeaveAsIs && pod.DeletionTimestamp != nil {
		p = PolicySetTerminal
	}
	return p
}

func ofDaemonSet(pod *v1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// setStatus gives the function that writes a policy into a pod's status. It is
// never nil, so that a killer needs no case for it.
func (p PodPolicy) setStatus() func(*v1.PodStatus) {
	if p == PolicyLeaveAsIs {
		return func(*v1.PodStatus) {}
	}
	return setTerminated
}

// setTerminated is the status function of the kubelet's killPods.
func setTerminated(status *v1.PodStatus) {
	if status.Phase != v1.PodSucceeded {
		status.Phase = v1.PodFailed
	}
	setDisrupted(status, TerminatedReason, TerminatedMessage)
}

// setDisrupted says why the node has ended a pod.
func setDisrupted(status *v1.PodStatus, reason, message string) {
	status.Reason, status.Message = reason, message
	podcondition.Set(status, v1.PodCondition{
		Type:    v1.DisruptionTarget,
		Status:  v1.ConditionTrue,
		Reason:  v1.PodReasonTerminationByKubelet,
		Message: message,
	}, metav1.Now())
}
