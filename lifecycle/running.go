package lifecycle

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// ContainersOf gives the containers that run by the status of a pod: regular ones,
// then init containers, sidecars among them, then ephemeral ones. The ID is that of
// the status without its "containerd://", as the container runtime interface takes it.
// A nil pod has none; the result is never nil.
func ContainersOf(pod *v1.Pod) []Container {
	running := []Container{}
	if pod == nil {
		return running
	}
	for _, status := range slices.Concat(pod.Status.ContainerStatuses,
		pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses) {
		if status.State.Running != nil {
			running = append(running, Container{Name: status.Name, ID: bareID(status.ContainerID)})
		}
	}
	return running
}

// bareID is a container ID without the name of its runtime.
func bareID(id string) string {
	if _, bare, found := strings.Cut(id, "://"); found {
		return bare
	}
	return id
}
