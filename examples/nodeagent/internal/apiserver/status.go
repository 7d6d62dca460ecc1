package apiserver

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kubelet's reasons of a Ready condition that is False.
const (
	reasonContainersNotReady = "ContainersNotReady"
	reasonPodCompleted       = "PodCompleted"
	reasonPodFailed          = "PodFailed"
)

// mergeStatus returns the status of a mirror with the phase, containers and conditions of
// the observed pod. Everything else stays as the API server has it.
func mergeStatus(mirror *v1.Pod, observed *v1.PodStatus, now metav1.Time) *v1.PodStatus {
	status := mirror.Status.DeepCopy()
	status.Phase, status.Reason, status.Message = observed.Phase, observed.Reason, observed.Message
	status.InitContainerStatuses, status.ContainerStatuses = observed.InitContainerStatuses, observed.ContainerStatuses
	if status.StartTime == nil {
		status.StartTime = observed.StartTime
	}
	for _, condition := range conditionsOf(&mirror.Spec, observed) {
		setCondition(status, condition, now)
	}
	return status
}

// conditionsOf derives the conditions of a pod from its phase and container statuses. A
// container without a status is not ready.
func conditionsOf(spec *v1.PodSpec, observed *v1.PodStatus) []v1.PodCondition {
	ready := v1.PodCondition{Status: v1.ConditionTrue}
	if reason := whyNotReady(spec, observed); reason != "" {
		ready = v1.PodCondition{Status: v1.ConditionFalse, Reason: reason}
	}
	containers := ready
	ready.Type, containers.Type = v1.PodReady, v1.ContainersReady
	return []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
		{Type: v1.PodInitialized, Status: v1.ConditionTrue},
		containers,
		ready,
	}
}

// whyNotReady returns the reason why a pod is not ready, or "".
func whyNotReady(spec *v1.PodSpec, status *v1.PodStatus) string {
	switch {
	case status.Phase == v1.PodSucceeded:
		return reasonPodCompleted
	case status.Phase == v1.PodFailed:
		return reasonPodFailed
	case len(status.ContainerStatuses) < len(spec.Containers), slices.ContainsFunc(slices.Concat(status.InitContainerStatuses, status.ContainerStatuses),
		func(c v1.ContainerStatus) bool { return !c.Ready }):
		return reasonContainersNotReady
	}
	return ""
}

// setCondition adds a condition or replaces the one of its type. LastTransitionTime
// becomes now only if the condition's status changes.
func setCondition(status *v1.PodStatus, condition v1.PodCondition, now metav1.Time) {
	condition.LastTransitionTime = now
	for i := range status.Conditions {
		old := &status.Conditions[i]
		if old.Type != condition.Type {
			continue
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		condition.LastProbeTime, condition.ObservedGeneration = old.LastProbeTime, old.ObservedGeneration
		*old = condition
		return
	}
	status.Conditions = append(status.Conditions, condition)
}

// terminal reports whether a phase is final.
func terminal(phase v1.PodPhase) bool { return phase == v1.PodSucceeded || phase == v1.PodFailed }
