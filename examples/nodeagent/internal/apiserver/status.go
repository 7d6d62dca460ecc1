package apiserver

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kubelet's reasons why a pod is not ready.
const (
	reasonContainers = "ContainersNotReady"
	reasonCompleted  = "PodCompleted"
	reasonFailed     = "PodFailed"
)

// merged is what the status on the API server becomes: the node has the last word on
// phase, containers and the conditions that follow from them, and leaves the rest.
func merged(mirror *v1.Pod, wanted *v1.PodStatus, now metav1.Time) *v1.PodStatus {
	status := mirror.Status.DeepCopy()
	status.Phase, status.Reason, status.Message = wanted.Phase, wanted.Reason, wanted.Message
	status.InitContainerStatuses, status.ContainerStatuses = wanted.InitContainerStatuses, wanted.ContainerStatuses
	if status.StartTime == nil {
		status.StartTime = wanted.StartTime
	}
	for _, condition := range conditionsOf(&mirror.Spec, wanted) {
		setCondition(status, condition, now)
	}
	return status
}

// conditionsOf follow from a pod's phase and containers. A container of which nothing
// is known is not ready.
func conditionsOf(spec *v1.PodSpec, wanted *v1.PodStatus) []v1.PodCondition {
	ready := v1.PodCondition{Status: v1.ConditionTrue}
	if reason := whyNotReady(spec, wanted); reason != "" {
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

// whyNotReady is the reason why a pod is not ready, "" if it is.
func whyNotReady(spec *v1.PodSpec, status *v1.PodStatus) string {
	switch {
	case status.Phase == v1.PodSucceeded:
		return reasonCompleted
	case status.Phase == v1.PodFailed:
		return reasonFailed
	case len(status.ContainerStatuses) < len(spec.Containers), slices.ContainsFunc(slices.Concat(status.InitContainerStatuses, status.ContainerStatuses),
		func(c v1.ContainerStatus) bool { return !c.Ready }):
		return reasonContainers
	}
	return ""
}

// setCondition writes a condition over the one of its type, or adds it. Its time
// changes with its status only.
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

// terminal tells whether a phase is one that no pod leaves.
func terminal(phase v1.PodPhase) bool { return phase == v1.PodSucceeded || phase == v1.PodFailed }
