package lifecycle

import (
	"iter"

	v1 "k8s.io/api/core/v1"
)

// role is the kind of a container in its pod's spec. It decides in which order containers stop.
type role int

const (
	roleUnknown   role = -4 // not in the spec; stopped without regard to the order
	roleEphemeral role = -3 // an ephemeral container; stopped without regard to the order
	roleInit      role = -2 // an init container that is no sidecar; stopped without regard to the order
	roleMain      role = -1 // a regular container
	// roleFirstSidecar and the values above it are sidecars: init containers with restartPolicy
	// Always (KEP-753). The value is the index among the init containers.
	roleFirstSidecar role = 0
)

// specField returns the path of the spec's field that lists the containers of a role.
func (r role) specField() string {
	switch {
	case r == roleEphemeral:
		return "spec.ephemeralContainers"
	case r == roleInit || r.isSidecar():
		return "spec.initContainers"
	default:
		return "spec.containers"
	}
}

// isSidecar reports whether the containers of a role are sidecars.
func (r role) isSidecar() bool { return r >= roleFirstSidecar }

// containersOf yields pointers into a pod's spec, to each container with its role.
func containersOf(pod *v1.Pod) iter.Seq2[*v1.Container, role] {
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

// findContainer returns the container with this name in a pod's spec; nil and roleUnknown if there is
// none.
func findContainer(pod *v1.Pod, name string) (*v1.Container, role) {
	for spec, role := range containersOf(pod) {
		if spec.Name == name {
			return spec, role
		}
	}
	return nil, roleUnknown
}
