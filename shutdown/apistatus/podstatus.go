package apistatus

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/podcondition"
)

// podPatch is a strategic merge patch of pods/status. It is built field by field because there is no
// old status to compute a patch from.
type podPatch struct {
	Metadata metadataPatch `json:"metadata"`
	Status   statusPatch   `json:"status"`
}

// metadataPatch holds the preconditions. The API server refuses to change these fields, and so refuses the whole
// patch if they differ from the pod's.
type metadataPatch struct {
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

// statusPatch holds the fields to write. The API server merges conditions by type, replaces lists of
// containers, and keeps omitted fields.
type statusPatch struct {
	Phase                      v1.PodPhase          `json:"phase,omitempty"`
	Reason                     *string              `json:"reason,omitempty"` // a pointer, so that "" clears the old reason
	Message                    *string              `json:"message,omitempty"`
	ObservedGeneration         int64                `json:"observedGeneration,omitempty"`
	Conditions                 []conditionPatch     `json:"conditions,omitempty"`
	InitContainerStatuses      []v1.ContainerStatus `json:"initContainerStatuses,omitempty"`
	ContainerStatuses          []v1.ContainerStatus `json:"containerStatuses,omitempty"`
	EphemeralContainerStatuses []v1.ContainerStatus `json:"ephemeralContainerStatuses,omitempty"`
}

// conditionPatch is v1.PodCondition without omitempty for reason and message: if they were omitted,
// the old ones would stay.
type conditionPatch struct {
	Type               v1.PodConditionType `json:"type"`
	ObservedGeneration int64               `json:"observedGeneration,omitempty"`
	Status             v1.ConditionStatus  `json:"status"`
	LastTransitionTime metav1.Time         `json:"lastTransitionTime"`
	Reason             string              `json:"reason"`
	Message            string              `json:"message"`
}

// empty reports whether the patch changes nothing but observedGeneration.
func (p *statusPatch) empty() bool {
	containers := len(p.InitContainerStatuses) + len(p.ContainerStatuses) + len(p.EphemeralContainerStatuses)
	return p.Phase == "" && len(p.Conditions) == 0 && containers == 0
}

// finalStatus returns the patch that [Reporter.FlushPod] writes: the phase if it is terminal, the conditions that a
// pod's end changes, and the container statuses.
func finalStatus(pod *v1.Pod, now metav1.Time) statusPatch {
	status := &pod.Status
	patch := statusPatch{ObservedGeneration: max(status.ObservedGeneration, podcondition.Generation(pod))}
	if isTerminal(status.Phase) {
		patch.Phase, patch.Reason, patch.Message = status.Phase, &status.Reason, &status.Message
	}
	for _, conditionType := range []v1.PodConditionType{v1.DisruptionTarget, v1.PodReadyToStartContainers, v1.ContainersReady, v1.PodReady} {
		if condition := finalCondition(status, conditionType); condition != nil {
			patch.Conditions = append(patch.Conditions, newConditionPatch(status, condition, podcondition.Generation(pod), now))
		}
	}
	patch.setContainers(pod)
	return patch
}

// The kubelet's reasons for the readiness conditions of a pod that has ended.
const reasonFailed, reasonCompleted = "PodFailed", "PodCompleted"

// finalCondition returns the condition of a type as the final status must have it, or nil to leave the API server's:
//
//   - DisruptionTarget, which says why the pod ends, is always that of the given status.
//   - In a terminal phase Ready and ContainersReady are False, with the reasons of the kubelet's mergePodStatus.
//   - Otherwise, and for PodReadyToStartContainers, it is that of the given status, but nil if that is True: a True
//     condition predates the pod's end and may be wrong.
func finalCondition(status *v1.PodStatus, conditionType v1.PodConditionType) *v1.PodCondition {
	condition := podcondition.Get(status, conditionType)
	switch {
	case conditionType == v1.DisruptionTarget:
		return condition
	case isTerminal(status.Phase) && conditionType != v1.PodReadyToStartContainers:
		reason := reasonFailed
		if status.Phase == v1.PodSucceeded {
			reason = reasonCompleted
		}
		return &v1.PodCondition{Type: conditionType, Status: v1.ConditionFalse, Reason: reason}
	case condition != nil && condition.Status != v1.ConditionTrue:
		return condition
	default:
		return nil
	}
}

// newConditionPatch returns the patch of a condition. A zero LastTransitionTime becomes that of the condition in oldStatus
// if its status stays the same, and otherwise now. ObservedGeneration becomes generation if that is newer.
func newConditionPatch(oldStatus *v1.PodStatus, condition *v1.PodCondition, generation int64, now metav1.Time) conditionPatch {
	transitionTime := condition.LastTransitionTime
	oldCondition := podcondition.Get(oldStatus, condition.Type)
	isUnchanged := oldCondition != nil && oldCondition.Status == condition.Status
	if transitionTime.IsZero() && isUnchanged {
		transitionTime = oldCondition.LastTransitionTime
	}
	if transitionTime.IsZero() {
		transitionTime = now
	}
	return conditionPatch{
		Type: condition.Type, Status: condition.Status, LastTransitionTime: transitionTime,
		Reason: condition.Reason, Message: condition.Message,
		ObservedGeneration: max(condition.ObservedGeneration, generation),
	}
}

// isTerminal reports whether the phase says that a pod has ended.
func isTerminal(phase v1.PodPhase) bool { return phase == v1.PodFailed || phase == v1.PodSucceeded }
