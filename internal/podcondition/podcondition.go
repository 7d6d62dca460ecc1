// Package podcondition reads and writes the conditions of a pod's status.
package podcondition

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Get is the condition of a type in a status, to be read; nil: there is none.
func Get(status *v1.PodStatus, of v1.PodConditionType) *v1.PodCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == of {
			return &status.Conditions[i]
		}
	}
	return nil
}

// Set writes status, reason and message of a condition over the one of its type, or
// adds it whole. The time of a transition changes with the status only, as the API's
// contract is; a condition that brings no time of its own gets now. All else that the
// old condition has stays: its probe time, and the generation of the pod that it was
// observed at. (The field of that is not named here, because Kubernetes before v1.33
// lacks it.) The list is copied first: the status may be a shallow copy of a cached one.
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
