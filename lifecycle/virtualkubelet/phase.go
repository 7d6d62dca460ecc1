package virtualkubelet

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// phaseLocked is the kubelet's getPhase. The final one is that of a pod whose
// containers have all ended: Succeeded if the regular ones did so with 0.
func (r *record) phaseLocked() v1.PodPhase {
	var waiting, failed bool
	for _, c := range r.containers {
		if c.init {
			continue
		}
		waiting = waiting || c.state == v1.ContainerState{}
		failed = failed || c.state.Terminated != nil && c.state.Terminated.ExitCode != 0
	}
	switch {
	case r.settling && failed:
		return v1.PodFailed
	case r.settling:
		return v1.PodSucceeded
	case waiting:
		return v1.PodPending
	default:
		return v1.PodRunning
	}
}

// writeConditionsLocked writes the two conditions that services look at.
func (r *record) writeConditionsLocked(status *v1.PodStatus) {
	value, reason := v1.ConditionFalse, "ContainersNotReady"
	if r.ready {
		value, reason = v1.ConditionTrue, ""
	}
	status.Conditions = slices.Clone(status.Conditions)
	for _, kind := range []v1.PodConditionType{v1.ContainersReady, v1.PodReady} {
		condition := v1.PodCondition{Type: kind, Status: value, Reason: reason, LastTransitionTime: r.readySince, ObservedGeneration: r.pod.Generation}
		i := slices.IndexFunc(status.Conditions, func(old v1.PodCondition) bool { return old.Type == kind })
		if i < 0 {
			status.Conditions = append(status.Conditions, condition)
		} else {
			status.Conditions[i] = condition
		}
	}
}
