package apistatus

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/internal/staticpod"
)

const (
	// reasonFailed and reasonCompleted are the kubelet's, of the readiness of a pod
	// that has ended.
	reasonFailed    = "PodFailed"
	reasonCompleted = "PodCompleted"
)

// podPatch is a strategic merge patch of pods/status. It is written out instead of
// being computed from two statuses, because there is only one.
type podPatch struct {
	Metadata metadataPatch `json:"metadata"`
	Status   statusPatch   `json:"status"`
}

// metadataPatch is what the pod has to have: fields that nobody can change.
type metadataPatch struct {
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

// statusPatch is the part of a status that is written. Conditions are merged by type,
// lists of containers replaced, and what is left out stays.
type statusPatch struct {
	Phase                      v1.PodPhase          `json:"phase,omitempty"`
	Reason                     *string              `json:"reason,omitempty"` // "": there is none any more
	Message                    *string              `json:"message,omitempty"`
	ObservedGeneration         int64                `json:"observedGeneration,omitempty"`
	Conditions                 []conditionPatch     `json:"conditions,omitempty"`
	InitContainerStatuses      []v1.ContainerStatus `json:"initContainerStatuses,omitempty"`
	ContainerStatuses          []v1.ContainerStatus `json:"containerStatuses,omitempty"`
	EphemeralContainerStatuses []v1.ContainerStatus `json:"ephemeralContainerStatuses,omitempty"`
}

// conditionPatch is v1.PodCondition whose reason and message are always written: one
// that is left out would be that of the earlier status.
type conditionPatch struct {
	Type               v1.PodConditionType `json:"type"`
	ObservedGeneration int64               `json:"observedGeneration,omitempty"`
	Status             v1.ConditionStatus  `json:"status"`
	LastTransitionTime metav1.Time         `json:"lastTransitionTime"`
	Reason             string              `json:"reason"`
	Message            string              `json:"message"`
}

// empty tells whether a patch would change nothing but what was observed.
func (p *statusPatch) empty() bool {
	return p.Phase == "" && len(p.Conditions)+
		len(p.InitContainerStatuses)+len(p.ContainerStatuses)+len(p.EphemeralContainerStatuses) == 0
}

// finalStatus is what is written of the final status of a pod.
func finalStatus(pod *v1.Pod, now metav1.Time) statusPatch {
	status := &pod.Status
	patch := statusPatch{ObservedGeneration: max(status.ObservedGeneration, generationOf(pod))}
	if terminal(status.Phase) {
		patch.Phase, patch.Reason, patch.Message = status.Phase, &status.Reason, &status.Message
	}
	for _, of := range []v1.PodConditionType{v1.DisruptionTarget, v1.PodReadyToStartContainers, v1.ContainersReady, v1.PodReady} {
		if condition := finalCondition(status, of); condition != nil {
			patch.Conditions = append(patch.Conditions, changed(status, condition, generationOf(pod), now))
		}
	}
	patch.InitContainerStatuses, patch.ContainerStatuses, patch.EphemeralContainerStatuses = finalContainers(pod)
	return patch
}

// finalCondition is a condition at the end of a pod: those of the kubelet's
// mergePodStatus for a terminal phase. Else what the node says is taken over, except
// that something is ready: that is older than the end of the pod. Nil: nothing is
// said.
func finalCondition(status *v1.PodStatus, of v1.PodConditionType) *v1.PodCondition {
	condition := podcondition.Get(status, of)
	switch {
	case of == v1.DisruptionTarget:
		return condition
	case terminal(status.Phase) && of != v1.PodReadyToStartContainers:
		return &v1.PodCondition{Type: of, Status: v1.ConditionFalse, Reason: reasonOf(status.Phase)}
	case condition != nil && condition.Status != v1.ConditionTrue:
		return condition
	default:
		return nil
	}
}

// reasonOf is the reason why a pod that has ended is not ready.
func reasonOf(phase v1.PodPhase) string {
	if phase == v1.PodSucceeded {
		return reasonCompleted
	}
	return reasonFailed
}

// changed is a condition as it is written over a status, observed at a generation of
// the pod, or a later one that the condition has itself. The time of its transition is
// its own, else that of the status before if that is the same, else now.
func changed(old *v1.PodStatus, condition *v1.PodCondition, generation int64, now metav1.Time) conditionPatch {
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

// generationOf is the generation of a pod that its status is about, as the kubelet's
// status manager has it. API servers before v1.33 do not count them: it is 0 then, and
// not written. So it is for a static pod, whose mirror pod has another one.
func generationOf(pod *v1.Pod) int64 {
	if staticpod.Is(pod) {
		return 0
	}
	return pod.Generation
}

// terminal tells whether a phase is one that no pod leaves.
func terminal(phase v1.PodPhase) bool {
	return phase == v1.PodFailed || phase == v1.PodSucceeded
}
