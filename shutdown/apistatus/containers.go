package apistatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

const (
	// reasonStatusUnknown, messageStatusUnknown and exitCodeUnknown are the kubelet's
	// (TerminatePod), of a container that has ended and whose exit code is not known.
	reasonStatusUnknown  = "ContainerStatusUnknown"
	messageStatusUnknown = "The container could not be located when the pod was terminated"
	exitCodeUnknown      = 137
)

// finalContainers are the lists of containers' statuses that are written for a pod. A
// nil one is not.
//
// In a terminal phase a container that is not said to have ended has ended without
// anybody telling its exit code, and is terminated. As in the kubelet's TerminatePod
// those are left waiting that were never started: init containers behind the last one
// that was, and all the others of a pod that was not initialized.
func finalContainers(pod *v1.Pod) (init, containers, ephemeral []v1.ContainerStatus) {
	status := &pod.Status
	if !terminal(status.Phase) {
		return endedSome(status.InitContainerStatuses), endedSome(status.ContainerStatuses), endedSome(status.EphemeralContainerStatuses)
	}
	init = slices.Clone(status.InitContainerStatuses)
	terminate(init[:started(init)])
	containers, ephemeral = slices.Clone(status.ContainerStatuses), slices.Clone(status.EphemeralContainerStatuses)
	if initialized(pod) {
		terminate(containers)
		terminate(ephemeral)
	}
	return init, containers, ephemeral
}

// endedSome gives statuses of which at least one is new: the container has ended.
func endedSome(statuses []v1.ContainerStatus) []v1.ContainerStatus {
	if slices.ContainsFunc(statuses, func(status v1.ContainerStatus) bool { return status.State.Terminated != nil }) {
		return statuses
	}
	return nil
}

// terminate writes the end of the containers that are not said to have ended.
func terminate(statuses []v1.ContainerStatus) {
	for i := range statuses {
		if statuses[i].State.Terminated != nil {
			continue
		}
		statuses[i].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: exitCodeUnknown, Reason: reasonStatusUnknown, Message: messageStatusUnknown,
		}}
		statuses[i].Ready, statuses[i].Started = false, new(bool)
	}
}

// started is how many init containers, from the first one on, were started or are to
// be taken for it (the kubelet's initializedContainers): the first one always is.
func started(statuses []v1.ContainerStatus) int {
	for i := len(statuses) - 1; i > 0; i-- {
		if hasRun(&statuses[i]) {
			return i + 1
		}
	}
	return min(1, len(statuses))
}

// initialized tells whether containers of a pod that are no init containers may have
// been started (the kubelet's hasPodInitialized).
func initialized(pod *v1.Pod) bool {
	if len(pod.Spec.InitContainers) == 0 {
		return true
	}
	if slices.ContainsFunc(pod.Status.ContainerStatuses, func(status v1.ContainerStatus) bool { return hasRun(&status) }) {
		return true
	}
	inits, last := pod.Status.InitContainerStatuses, len(pod.Spec.InitContainers)-1
	if len(inits) <= last {
		return false
	}
	status := &inits[last]
	if isSidecar(&pod.Spec.InitContainers[last]) {
		return status.Started != nil && *status.Started
	}
	return succeeded(status.State) || succeeded(status.LastTerminationState)
}

// hasRun tells whether there is any sign that a container was started.
func hasRun(status *v1.ContainerStatus) bool {
	return status.State.Waiting == nil || status.LastTerminationState.Terminated != nil
}

func succeeded(state v1.ContainerState) bool {
	return state.Terminated != nil && state.Terminated.ExitCode == 0
}

// mayRun tells whether a container of a pod may run by what the pod says. In a terminal
// phase none does. Else each that runs does, and, where the pod is not Pending, each of
// which nothing is said; an init container that is no sidecar has ended by then.
func mayRun(pod *v1.Pod) bool {
	status := &pod.Status
	if terminal(status.Phase) {
		return false
	}
	known := map[string]bool{}
	for _, statuses := range [][]v1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range statuses {
			if statuses[i].State.Running != nil {
				return true
			}
			known[statuses[i].Name] = statuses[i].State != v1.ContainerState{}
		}
	}
	if status.Phase == v1.PodPending {
		return false
	}
	return len(known) == 0 || slices.ContainsFunc(longRunning(&pod.Spec), func(name string) bool { return !known[name] })
}

// isSidecar tells whether an init container runs as long as its pod (KEP-753).
func isSidecar(container *v1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// longRunning names the containers of a pod that run as long as it does.
func longRunning(spec *v1.PodSpec) []string {
	var names []string
	for i := range spec.InitContainers {
		if isSidecar(&spec.InitContainers[i]) {
			names = append(names, spec.InitContainers[i].Name)
		}
	}
	for i := range spec.Containers {
		names = append(names, spec.Containers[i].Name)
	}
	for i := range spec.EphemeralContainers {
		names = append(names, spec.EphemeralContainers[i].Name)
	}
	return names
}
