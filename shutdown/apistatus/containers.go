package apistatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

const (
	// reasonStatusUnknown, messageStatusUnknown and exitCodeUnknown are what the kubelet's TerminatePod
	// writes for a container with an unknown exit code.
	reasonStatusUnknown  = "ContainerStatusUnknown"
	messageStatusUnknown = "The container could not be located when the pod was terminated"
	exitCodeUnknown      = 137
)

// setContainers sets the container statuses to write for a pod. A nil list is not written.
//
// In a terminal phase every started container that has no terminated state gets one, with an unknown exit code. Containers that
// were never started stay waiting, as in the kubelet's TerminatePod. In other phases a list is written unchanged once one of its
// containers has ended.
func (p *statusPatch) setContainers(pod *v1.Pod) {
	status := &pod.Status
	if !isTerminal(status.Phase) {
		p.InitContainerStatuses = ifAnyEnded(status.InitContainerStatuses)
		p.ContainerStatuses = ifAnyEnded(status.ContainerStatuses)
		p.EphemeralContainerStatuses = ifAnyEnded(status.EphemeralContainerStatuses)
		return
	}
	p.InitContainerStatuses = slices.Clone(status.InitContainerStatuses)
	p.ContainerStatuses = slices.Clone(status.ContainerStatuses)
	p.EphemeralContainerStatuses = slices.Clone(status.EphemeralContainerStatuses)
	terminate(p.InitContainerStatuses[:startedCount(p.InitContainerStatuses)])
	if mayHaveStarted(pod) {
		terminate(p.ContainerStatuses)
		terminate(p.EphemeralContainerStatuses)
	}
}

// ifAnyEnded returns statuses if one of the containers has ended, and nil otherwise.
func ifAnyEnded(statuses []v1.ContainerStatus) []v1.ContainerStatus {
	if slices.ContainsFunc(statuses, func(status v1.ContainerStatus) bool { return status.State.Terminated != nil }) {
		return statuses
	}
	return nil
}

// terminate gives every container that is not terminated a terminated state with an unknown exit code.
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

// startedCount returns how many init containers count as started: all up to the last one that has run, and
// the first one even if none has run (the kubelet's initializedContainers).
func startedCount(statuses []v1.ContainerStatus) int {
	for i := len(statuses) - 1; i > 0; i-- {
		if hasRun(&statuses[i]) {
			return i + 1
		}
	}
	return min(1, len(statuses))
}

// mayHaveStarted reports whether the regular containers of a pod may have been started (the kubelet's
// hasPodInitialized). They may if
//   - the pod has no init containers,
//   - a regular container has run, or
//   - the last init container has succeeded or, if it is a sidecar, has started.
func mayHaveStarted(pod *v1.Pod) bool {
	if len(pod.Spec.InitContainers) == 0 {
		return true
	}
	if slices.ContainsFunc(pod.Status.ContainerStatuses, func(status v1.ContainerStatus) bool { return hasRun(&status) }) {
		return true
	}
	statuses, last := pod.Status.InitContainerStatuses, len(pod.Spec.InitContainers)-1
	if len(statuses) <= last { // the last init container has no status yet
		return false
	}
	status := &statuses[last]
	if isSidecar(&pod.Spec.InitContainers[last]) {
		return status.Started != nil && *status.Started
	}
	return succeeded(status.State) || succeeded(status.LastTerminationState)
}

// hasRun reports whether the container was ever started.
func hasRun(status *v1.ContainerStatus) bool {
	return status.State.Waiting == nil || status.LastTerminationState.Terminated != nil
}

// succeeded reports whether the container has ended with exit code 0.
func succeeded(state v1.ContainerState) bool {
	return state.Terminated != nil && state.Terminated.ExitCode == 0
}

// mayRun reports whether a container of the pod may be running according to the pod's status. In a terminal phase none is. A
// container without a state may be running too, unless the pod is Pending. Only init containers that are no sidecars are known to
// have ended when the pod leaves Pending.
func mayRun(pod *v1.Pod) bool {
	status := &pod.Status
	if isTerminal(status.Phase) {
		return false
	}
	hasState := map[string]bool{} // by container name
	for _, s := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses) {
		if s.State.Running != nil {
			return true
		}
		hasState[s.Name] = s.State != v1.ContainerState{}
	}
	if status.Phase == v1.PodPending {
		return false
	}
	if isNothingKnown := len(hasState) == 0; isNothingKnown {
		return true
	}
	isUnknownSidecar := func(c v1.Container) bool { return isSidecar(&c) && !hasState[c.Name] }
	isUnknown := func(c v1.Container) bool { return !hasState[c.Name] }
	isUnknownEphemeral := func(c v1.EphemeralContainer) bool { return !hasState[c.Name] }
	return slices.ContainsFunc(pod.Spec.InitContainers, isUnknownSidecar) ||
		slices.ContainsFunc(pod.Spec.Containers, isUnknown) ||
		slices.ContainsFunc(pod.Spec.EphemeralContainers, isUnknownEphemeral)
}

// isSidecar reports whether an init container is restartable (KEP-753).
func isSidecar(container *v1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == v1.ContainerRestartPolicyAlways
}
