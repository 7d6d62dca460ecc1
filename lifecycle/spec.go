package lifecycle

import (
	"errors"
	"iter"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// role is the kind of a container in its pod's spec. It decides the order of the stops.
type role int

const (
	roleUnknown   role = -4 // not in the spec; stopped without regard to the order
	roleEphemeral role = -3 // an ephemeral container; stopped without regard to the order
	roleInit      role = -2 // an init container but no sidecar; stopped without regard to the order
	roleMain      role = -1 // a regular container
	// roleFirstSidecar and the roles after it are those of sidecars, which are init containers with
	// restartPolicy Always (KEP-753): the index among the init containers.
	roleFirstSidecar role = 0
)

// list returns the path of the list in the spec that has the containers of a role.
func (r role) list() string {
	switch {
	case r == roleEphemeral:
		return "spec.ephemeralContainers"
	case r == roleInit || r >= roleFirstSidecar:
		return "spec.initContainers"
	default:
		return "spec.containers"
	}
}

// specsOf yields the containers of a pod's spec, not copied, with the role of each.
func specsOf(pod *v1.Pod) iter.Seq2[*v1.Container, role] {
	return func(yield func(*v1.Container, role) bool) {
		for i := range pod.Spec.Containers {
			if !yield(&pod.Spec.Containers[i], roleMain) {
				return
			}
		}
		for i := range pod.Spec.InitContainers {
			c, r := &pod.Spec.InitContainers[i], roleInit
			if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
				r = roleFirstSidecar + role(i)
			}
			if !yield(c, r) {
				return
			}
		}
		for i := range pod.Spec.EphemeralContainers {
			if !yield((*v1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon), roleEphemeral) {
				return
			}
		}
	}
}

// findContainer returns the container of that name in a pod's spec, nil and roleUnknown if
// there is none.
func findContainer(pod *v1.Pod, name string) (*v1.Container, role) {
	for spec, role := range specsOf(pod) {
		if spec.Name == name {
			return spec, role
		}
	}
	return nil, roleUnknown
}

// ErrUnknownContainers is wrapped by the error of a container that may run but cannot be
// stopped: either its ID is not known, or the request has no list of containers,
// [Pod.Start] has started none, and the pod's status has no state for the container.
// The outcome of the container is [RuntimeStuck]. A pod whose phase is Pending, Succeeded
// or Failed has no unknown containers.
var ErrUnknownContainers = errors.New("it is not known which containers run")

// statusesOf yields the statuses of all containers of a pod. They are not copied, because
// they are large.
func statusesOf(pod *v1.Pod) iter.Seq[*v1.ContainerStatus] {
	return func(yield func(*v1.ContainerStatus) bool) {
		for _, list := range [...][]v1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// ContainersOf returns the containers that run by the status of a pod: regular containers,
// then init containers, which include sidecars, then ephemeral containers. The ID is that
// of the status without the prefix ("containerd://"), as in the container runtime
// interface; it is "" if the status has none. The result is empty for a nil pod, and never
// nil.
func ContainersOf(pod *v1.Pod) []Container {
	running := []Container{}
	if pod == nil {
		return running
	}
	for status := range statusesOf(pod) {
		if status.State.Running != nil {
			running = append(running, Container{Name: status.Name, ID: bareID(status.ContainerID)})
		}
	}
	return running
}

// hasState reports whether the status of a pod has a state for a container.
func hasState(pod *v1.Pod, name string) bool {
	for s := range statusesOf(pod) {
		if s.Name == name && s.State != (v1.ContainerState{}) {
			return true
		}
	}
	return false
}

// isDown reports whether a container does not run by the status of its pod.
func isDown(pod *v1.Pod, name string) bool {
	for s := range statusesOf(pod) {
		if s.Name == name && (s.State.Waiting != nil || s.State.Terminated != nil) {
			return true
		}
	}
	return false
}

// startOf returns when a running container was started by the status of its pod, zero if
// the status does not say.
func startOf(pod *v1.Pod, id string) time.Time {
	for status := range statusesOf(pod) {
		if running := status.State.Running; running != nil && bareID(status.ContainerID) == id {
			return running.StartedAt.Time
		}
	}
	return time.Time{}
}

// hasExited reports whether a container that was started after some time has exited by the
// status of its pod. An exit before that time is one of another container with the same ID:
// runtimes of processes reuse their IDs.
func hasExited(pod *v1.Pod, c *ContainerResult, startedAfter time.Time) bool {
	isLater := func(t *v1.ContainerStateTerminated) bool {
		return t != nil && (t.FinishedAt.IsZero() || t.FinishedAt.After(startedAfter))
	}
	for s := range statusesOf(pod) {
		now, before := s.State.Terminated, s.LastTerminationState.Terminated
		matches := func(id string) bool { return bareID(id) == c.ID }
		if isLater(now) && (matches(s.ContainerID) || matches(now.ContainerID)) || isLater(before) && matches(before.ContainerID) {
			return true
		}
	}
	return false
}

// startedOrEndedAfter reports whether the status of a pod has a container of a name that was
// started, or has ended, after some time.
func startedOrEndedAfter(pod *v1.Pod, name string, after time.Time) bool {
	for s := range statusesOf(pod) {
		running, terminated := s.State.Running, s.State.Terminated
		if s.Name == name && (running != nil && running.StartedAt.After(after) || terminated != nil && terminated.FinishedAt.After(after)) {
			return true
		}
	}
	return false
}

// bareID returns a container ID without the prefix that names its runtime.
func bareID(id string) string {
	if _, bare, found := strings.Cut(id, "://"); found {
		return bare
	}
	return id
}
