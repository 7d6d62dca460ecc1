// Package podcondition reads and writes the conditions of a pod's status.
package podcondition

import (
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// Generation returns the ObservedGeneration for a pod's status, as in the kubelet's status manager. It is
// 0 before v1.33, where pods have no generation, and for static pods, whose mirror pods have another generation.
func Generation(pod *v1.Pod) int64 {
	if staticpod.Is(pod) {
		return 0
	}
	return pod.Generation
}

// SetObservedGeneration sets the ObservedGeneration of the condition with this type, if the status has it, as the kubelet
// does since v1.34. It uses reflection, because Kubernetes before v1.33 does not have the field. It modifies
// the list of conditions in place: call it after [Set], which copies the list.
func SetObservedGeneration(status *v1.PodStatus, conditionType v1.PodConditionType, generation int64) {
	condition := Get(status, conditionType)
	if condition == nil {
		return
	}
	field := reflect.ValueOf(condition).Elem().FieldByName("ObservedGeneration")
	if field.IsValid() { // not before Kubernetes v1.33
		field.SetInt(generation)
	}
}

// Get returns the condition with this type, or nil. It points into the list of the status, so a caller that modifies
// it changes every copy of the status that shares the list.
func Get(status *v1.PodStatus, conditionType v1.PodConditionType) *v1.PodCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == conditionType {
			return &status.Conditions[i]
		}
	}
	return nil
}

// Set sets the status, reason and message of the condition with the same type, or appends condition. As the
// API requires, LastTransitionTime changes only if the status does. It becomes the LastTransitionTime of condition or,
// if that is zero, now. The other fields of an existing condition stay. Set copies the list of conditions first,
// because status may be a shallow copy of a cached status.
func Set(status *v1.PodStatus, condition v1.PodCondition, now metav1.Time) {
	if condition.LastTransitionTime.IsZero() {
		condition.LastTransitionTime = now
	}
	if Get(status, condition.Type) == nil {
		status.Conditions = append(slices.Clip(status.Conditions), condition) // Clip makes append copy the list
		return
	}
	status.Conditions = slices.Clone(status.Conditions)
	old := Get(status, condition.Type)
	if old.Status != condition.Status {
		old.LastTransitionTime = condition.LastTransitionTime
	}
	old.Status, old.Reason, old.Message = condition.Status, condition.Reason, condition.Message
}
