// Package podcondition reads and writes the conditions of a pod's status.
package podcondition

import (
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// Generation returns the generation of a pod that its status refers to, as in the kubelet's status
// manager. It is 0 on API servers before v1.33, which do not count generations of pods, and for
// static pods, because their mirror pods have other generations.
func Generation(pod *v1.Pod) int64 {
	if staticpod.Is(pod) {
		return 0
	}
	return pod.Generation
}

// Observe sets the generation of the pod at which the condition of a type was observed, as the
// kubelet does since v1.34, if the status has the condition. The field is set by its name, because
// Kubernetes before v1.33 lacks it. Observe writes to the list of conditions: call it after [Set],
// which has made a copy.
func Observe(status *v1.PodStatus, conditionType v1.PodConditionType, generation int64) {
	if condition := Get(status, conditionType); condition != nil {
		if field := reflect.ValueOf(condition).Elem().FieldByName("ObservedGeneration"); field.IsValid() {
			field.SetInt(generation)
		}
	}
}

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
// existing condition stay: the probe time, and the generation, which [Observe] sets. Set copies the
// list of conditions first, because status may be a shallow copy of a cached status.
func Set(status *v1.PodStatus, condition v1.PodCondition, now metav1.Time) {
	if condition.LastTransitionTime.IsZero() {
		condition.LastTransitionTime = now
	}
	if Get(status, condition.Type) == nil {
		status.Conditions = append(slices.Clip(status.Conditions), condition)
		return
	}
	status.Conditions = slices.Clone(status.Conditions)
	old := Get(status, condition.Type)
	if old.Status != condition.Status {
		old.LastTransitionTime = condition.LastTransitionTime
	}
	old.Status, old.Reason, old.Message = condition.Status, condition.Reason, condition.Message
}
