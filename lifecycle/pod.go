package lifecycle

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// role is what a container is in its pod's spec, and so its part in the order.
type role int

const (
	roleUnknown   role = -4 // not in the spec, and so out of order
	roleEphemeral role = -3 // out of order as well
	roleInit      role = -2 // plain, and out of order
	roleMain      role = -1 // a regular container
	// A role from 0 on is that of a sidecar, a restartable init container
	// (KEP-753): its index among the init containers.
	roleFirstSidecar role = 0
)

// list is the field of the spec that has the containers of a role.
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

// specsOf are the containers of a pod's spec, in place, and the role of each.
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

// findContainer finds a container by name in a pod's spec, nil if there is none.
func findContainer(pod *v1.Pod, name string) (*v1.Container, role) {
	for spec, role := range specsOf(pod) {
		if spec.Name == name {
			return spec, role
		}
	}
	return nil, roleUnknown
}

// mustWaitFor tells whether a container stops after another one: a sidecar after
// all main containers, and after every sidecar declared later. The kubelet has it wait
// for the next sidecar only, which is the same unless that one does not run.
func (r role) mustWaitFor(other role) bool {
	return r >= roleFirstSidecar && (other == roleMain || other > r)
}

// ErrUnknownContainers is wrapped by the error of a container of which nobody knows
// whether it runs: the request has no list, [Terminator.Start] has started nothing,
// and the pod's status does not say how the container is, or it runs and has no ID.
// Its outcome is [RuntimeStuck]. A pod that is Pending, Succeeded or Failed runs none.
var ErrUnknownContainers = errors.New("it is not known which containers run")

// unknownContainer is one such container, which is not in its pod's table.
func unknownContainer(p *podTable, name string) *container {
	err := fmt.Errorf("container %q has no ID or no state: %w", name, ErrUnknownContainers)
	return &container{table: p, result: ContainerResult{Name: name, Phase: PhaseEnded, Outcome: RuntimeStuck, Err: err}}
}

// isUnknown tells whether a container is one of those.
func (c *container) isUnknown() bool { return errors.Is(c.result.Err, ErrUnknownContainers) }

// statusesOf are the statuses of all containers of a pod, which are large, in place.
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

// ContainersOf gives the containers that run by the status of a pod: regular ones,
// then init containers, sidecars among them, then ephemeral ones. The ID is that of
// the status without its "containerd://", as the container runtime interface takes it;
// it is "" where the status has none. A nil pod has none; the result is never nil.
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

// hasState tells whether the status of a pod says how a container is.
func hasState(pod *v1.Pod, name string) bool {
	for s := range statusesOf(pod) {
		if s.Name == name && s.State != (v1.ContainerState{}) {
			return true
		}
	}
	return false
}

// startOf is when a running container was started by the status of its pod, zero if
// that does not say.
func startOf(pod *v1.Pod, id string) time.Time {
	for status := range statusesOf(pod) {
		if running := status.State.Running; running != nil && bareID(status.ContainerID) == id {
			return running.StartedAt.Time
		}
	}
	return time.Time{}
}

// hasExited tells whether a container whose start has begun at some time has exited by the
// status of its pod. An end that the status dates earlier is that of another one which had
// its ID: runtimes of processes use their names again. One without an ID is known by its
// name.
func hasExited(pod *v1.Pod, c *ContainerResult, began time.Time) bool {
	isSince := func(t *v1.ContainerStateTerminated) bool {
		return t != nil && (t.FinishedAt.IsZero() || t.FinishedAt.After(began))
	}
	for s := range statusesOf(pod) {
		now, before := s.State.Terminated, s.LastTerminationState.Terminated
		isIt := func(id string) bool {
			if c.ID == "" {
				return s.Name == c.Name
			}
			return bareID(id) == c.ID
		}
		if isSince(now) && (isIt(s.ContainerID) || isIt(now.ContainerID)) || isSince(before) && isIt(before.ContainerID) {
			return true
		}
	}
	return false
}

// bareID is a container ID without the name of its runtime.
func bareID(id string) string {
	if _, bare, found := strings.Cut(id, "://"); found {
		return bare
	}
	return id
}
