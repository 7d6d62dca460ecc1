// Package podcondition reads and writes the conditions of a pod's status.
package podcondition

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Get returns the condition of a type in a status, nil if there is none. The condition
// must not be written to.
func Get(status *v1.PodStatus, conditionType v1.PodConditionType) *v1.PodCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == conditionType {
			return &status.Conditions[i]
		}
	}
	return nil
}

// Set sets the status, reason and message of the condition with the type of condition, or
// appends condition if there is none. LastTransitionTime changes only if the status does,
// by the contract of the API; it becomes now if condition has none. The other fields of an
// existing condition stay: the probe time, and the generation of the pod at which the
// condition was observed (whose field Kubernetes before v1.33 lacks). Set copies the list
// of conditions first, because status may be a shallow copy of a cached status.
func Set(status *v1.PodStatus, condition v1.PodCondition, now metav1.Time) {
	if condition.LastTransitionTime.IsZero() {
		condition.LastTransitionTime = now
	}
	status.Conditions = slices.Clone(status.Conditions)
	old := Get(status, condition.Type)
	if old == nil {
		status.Conditions = append(status.Conditions, condition)
		return
	}
	if old.Status != condition.Status {
		old.LastTransitionTime = condition.LastTransitionTime
	}
	old.Status, old.Reason, old.Message = condition.Status, condition.Reason, condition.Message
}
