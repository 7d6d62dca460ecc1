package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// ErrUnknownContainers is wrapped by the error of a container of which nobody knows
// whether it runs: the request has no list, [Terminator.Start] has started nothing,
// and the pod's status does not say how the container is, or it runs and has no ID.
// Its outcome is [RuntimeStuck]. A pod that is Pending, Succeeded or Failed runs none.
var ErrUnknownContainers = errors.New("it is not known which containers run")

// unknownContainer is the error of one such container.
func unknownContainer(name string) error {
	return fmt.Errorf("container %q has no ID or no state: %w", name, ErrUnknownContainers)
}

// statusesOf are the statuses of all containers of a pod.
func statusesOf(pod *v1.Pod) []v1.ContainerStatus {
	return slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses)
}

// ContainersOf gives the containers that run by the status of a pod: regular ones,
// then init containers, sidecars among them, then ephemeral ones. The ID is that of
// the status without its "containerd://", as the container runtime interface takes it;
// it is "" where the status has none. A nil pod has none; the result is never nil.
func ContainersOf(pod *v1.Pod) []Container {
	running := []Container{}
	if pod == nil {
		return running
	}
	for _, status := range statusesOf(pod) {
		if status.State.Running != nil {
			running = append(running, Container{Name: status.Name, ID: bareID(status.ContainerID)})
		}
	}
	return running
}

// stateless are the main containers and sidecars of a pod whose status does not say
// whether they run, though they may.
func stateless(pod *v1.Pod) (unknown []Container) {
	if slices.Contains([]v1.PodPhase{v1.PodPending, v1.PodSucceeded, v1.PodFailed}, pod.Status.Phase) {
		return nil
	}
	specs := slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers)
	for i := range specs {
		if i >= len(pod.Spec.Containers) && !isSidecar(&specs[i]) {
			continue
		}
		stated := func(s v1.ContainerStatus) bool {
			return s.Name == specs[i].Name && s.State != v1.ContainerState{}
		}
		if !slices.ContainsFunc(statusesOf(pod), stated) {
			unknown = append(unknown, Container{Name: specs[i].Name})
		}
	}
	return unknown
}

// startOf is when a running container was started by the status of its pod, zero if
// that does not say.
func startOf(pod *v1.Pod, id string) time.Time {
	for _, status := range statusesOf(pod) {
		if running := status.State.Running; running != nil && bareID(status.ContainerID) == id {
			return running.StartedAt.Time
		}
	}
	return time.Time{}
}

// hasExited tells whether a container has exited by the status of its pod.
func hasExited(pod *v1.Pod, id string) bool {
	return slices.ContainsFunc(statusesOf(pod), func(s v1.ContainerStatus) bool {
		now, before := s.State.Terminated, s.LastTerminationState.Terminated
		return now != nil && (bareID(s.ContainerID) == id || bareID(now.ContainerID) == id) ||
			before != nil && bareID(before.ContainerID) == id
	})
}

// bareID is a container ID without the name of its runtime.
func bareID(id string) string {
	if _, bare, found := strings.Cut(id, "://"); found {
		return bare
	}
	return id
}
