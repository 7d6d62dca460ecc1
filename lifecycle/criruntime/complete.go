package criruntime

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// complete returns a pod with what Options.Complete adds to it, nil if that leaves it out.
func (o Options) complete(pod *v1.Pod) *v1.Pod {
	if o.Complete == nil {
		return pod
	}
	status := pod.Status
	told := o.Complete(pod)
	if told == nil {
		return nil
	}
	completed := *told
	completed.Status = *mergedStatus(&told.Spec, &told.Status, &status)
	return &completed
}

// mergedStatus returns the status that others tell of a pod, with phase, addresses and
// container statuses as the runtime has them. A container of the spec that the runtime does not
// have, and that has not terminated, is waiting.
func mergedStatus(spec *v1.PodSpec, told, own *v1.PodStatus) *v1.PodStatus {
	merged := told.DeepCopy()
	merged.Phase = own.Phase
	if own.PodIP != "" {
		merged.PodIP, merged.PodIPs = own.PodIP, own.PodIPs
	}
	if own.HostIP != "" {
		merged.HostIP = own.HostIP
	}
	rest := slices.Clone(own.ContainerStatuses)
	take := func(name string, told []v1.ContainerStatus) v1.ContainerStatus {
		isNamed := func(s v1.ContainerStatus) bool { return s.Name == name }
		if i := slices.IndexFunc(rest, isNamed); i >= 0 {
			status := rest[i]
			rest = slices.Delete(rest, i, i+1)
			return status
		}
		if i := slices.IndexFunc(told, isNamed); i >= 0 && told[i].State.Terminated != nil {
			return told[i]
		}
		return v1.ContainerStatus{Name: name, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: waitingReason}}}
	}
	merged.InitContainerStatuses, merged.ContainerStatuses, merged.EphemeralContainerStatuses = nil, nil, nil
	for i := range spec.InitContainers {
		merged.InitContainerStatuses = append(merged.InitContainerStatuses, take(spec.InitContainers[i].Name, told.InitContainerStatuses))
	}
	for i := range spec.Containers {
		merged.ContainerStatuses = append(merged.ContainerStatuses, take(spec.Containers[i].Name, told.ContainerStatuses))
	}
	for i := range spec.EphemeralContainers {
		merged.EphemeralContainerStatuses = append(merged.EphemeralContainerStatuses, take(spec.EphemeralContainers[i].Name, told.EphemeralContainerStatuses))
	}
	merged.ContainerStatuses = append(merged.ContainerStatuses, rest...)
	return merged
}
