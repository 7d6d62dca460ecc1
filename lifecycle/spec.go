package lifecycle

import (
	"iter"

	v1 "k8s.io/api/core/v1"
)

// role is the kind of a container in its pod's spec. It decides the order in which containers stop: main
// containers first, then the sidecars from the last to the first. Of two sidecars, the one with the higher
// role stops first.
type role int

const (
	roleUnknown   role = -4 // not in the spec; stops without order
	roleEphemeral role = -3 // an ephemeral container; stops without order
	roleInit      role = -2 // an init container that is not a sidecar; stops without order
	roleMain      role = -1 // a regular container
	// roleFirstSidecar and higher values are sidecars: init containers with restartPolicy Always
	// (KEP-753). The value is the index in initContainers.
	roleFirstSidecar role = 0
)

// specField returns the path of the spec's field that has the containers of a role, for the objects of events.
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

// isSidecar reports whether r is one of the sidecars, each of which has a role of its own for its place in the order.
func (r role) isSidecar() bool { return r >= roleFirstSidecar }

// containersOf yields a pointer to each container in a pod's spec, with its role. The role of a sidecar is
// roleFirstSidecar plus its index among the init containers: sidecars stop in the reverse order of these roles.
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
