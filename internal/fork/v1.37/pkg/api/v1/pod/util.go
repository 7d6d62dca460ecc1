// Package pod stands in for Kubernetes' package of this name. A fork copies only the files with
// kubegrace in their path (SERIES.md). The other files declare just what those need.
package pod

import (
	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"k8s.io/kubernetes/pkg/features"
)

// GetPodCondition returns the index of a condition and the condition.
func GetPodCondition(status *v1.PodStatus, conditionType v1.PodConditionType) (int, *v1.PodCondition) {
	for i := range status.Conditions {
		if status.Conditions[i].Type == conditionType {
			return i, &status.Conditions[i]
		}
	}
	return -1, nil
}

// CalculatePodConditionObservedGeneration returns the pod's generation if the gate is on or the condition already has
// one, and 0 otherwise.
func CalculatePodConditionObservedGeneration(status *v1.PodStatus, generation int64, conditionType v1.PodConditionType) int64 {
	_, condition := GetPodCondition(status, conditionType)
	if utilfeature.DefaultFeatureGate.Enabled(features.PodObservedGenerationTracking) || condition != nil && condition.ObservedGeneration != 0 {
		return generation
	}
	return 0
}
