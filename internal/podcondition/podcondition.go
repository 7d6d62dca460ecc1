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

// Set writes a condition over the one of its type, or adds it. The time of a
// transition changes with the status only, as the API's contract is; a condition that
// brings no time of its own gets now. A generation that was observed already is not
// taken back, and the time of a probe stays. The list is copied first: the status may
// be a shallow copy of a cached one.
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
	if old.Status == condition.Status {
		condition.LastTransitionTime = old.LastTransitionTime
	}
	condition.LastProbeTime = old.LastProbeTime
	condition.ObservedGeneration = max(condition.ObservedGeneration, old.ObservedGeneration)
	*old = condition
}
