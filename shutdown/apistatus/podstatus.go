package apistatus

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/podcondition"
)

// podPatch is a strategic merge patch of pods/status. It is built field by field because
// there is only the new status and no old one to compute a patch from.
type podPatch struct {
	Metadata metadataPatch `json:"metadata"`
	Status   statusPatch   `json:"status"`
}

// metadataPatch has the preconditions of the patch: the API server refuses to change
// these fields.
type metadataPatch struct {
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

// statusPatch has the fields of the status to write. The API server merges conditions by
// type, replaces lists of containers, and keeps fields that are left out.
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

// conditionPatch is v1.PodCondition with a reason and message that are always written: if
// they were left out, the old ones would stay.
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
	return p.Phase == "" && len(p.Conditions)+
		len(p.InitContainerStatuses)+len(p.ContainerStatuses)+len(p.EphemeralContainerStatuses) == 0
}

// finalStatus returns the patch that [Reporter.FlushPod] writes.
func finalStatus(pod *v1.Pod, now metav1.Time) statusPatch {
	status := &pod.Status
	patch := statusPatch{ObservedGeneration: max(status.ObservedGeneration, podcondition.Generation(pod))}
	if terminal(status.Phase) {
		patch.Phase, patch.Reason, patch.Message = status.Phase, &status.Reason, &status.Message
	}
	for _, conditionType := range []v1.PodConditionType{v1.DisruptionTarget, v1.PodReadyToStartContainers, v1.ContainersReady, v1.PodReady} {
		if condition := finalCondition(status, conditionType); condition != nil {
			patch.Conditions = append(patch.Conditions, newConditionPatch(status, condition, podcondition.Generation(pod), now))
		}
	}
	patch.InitContainerStatuses, patch.ContainerStatuses, patch.EphemeralContainerStatuses = finalContainers(pod)
	return patch
}

// The kubelet's reasons for the readiness conditions of a pod that has ended.
const reasonFailed, reasonCompleted = "PodFailed", "PodCompleted"

// finalCondition returns the condition of a type to write for a pod that ends, or nil for
// none. In a terminal phase the readiness conditions are those of the kubelet's
// mergePodStatus. Otherwise the node's condition is written, unless it is True: it is
// then older than the end of the pod.
func finalCondition(status *v1.PodStatus, conditionType v1.PodConditionType) *v1.PodCondition {
	condition := podcondition.Get(status, conditionType)
	switch {
	case conditionType == v1.DisruptionTarget:
		return condition
	case terminal(status.Phase) && conditionType != v1.PodReadyToStartContainers:
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

// newConditionPatch returns the patch of a condition. LastTransitionTime is that of the
// condition; if that is zero, the one of the old condition if the status is the same, and
// otherwise now. ObservedGeneration is at least generation.
func newConditionPatch(old *v1.PodStatus, condition *v1.PodCondition, generation int64, now metav1.Time) conditionPatch {
	since := condition.LastTransitionTime
	if before := podcondition.Get(old, condition.Type); since.IsZero() && before != nil && before.Status == condition.Status {
		since = before.LastTransitionTime
	}
	if since.IsZero() {
		since = now
	}
	return conditionPatch{
		Type: condition.Type, Status: condition.Status, LastTransitionTime: since,
		Reason: condition.Reason, Message: condition.Message,
		ObservedGeneration: max(condition.ObservedGeneration, generation),
	}
}

// terminal reports whether a pod never leaves the phase.
func terminal(phase v1.PodPhase) bool { return phase == v1.PodFailed || phase == v1.PodSucceeded }
