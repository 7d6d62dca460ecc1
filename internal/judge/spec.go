package judge

import (
	v1 "k8s.io/api/core/v1"
)

// kind is the kind of a container in its pod.
type kind int

const (
	unknown kind = iota
	mainContainer
	sidecar
	initContainer
	ephemeral
)

// spec is a container in its pod's spec.
type spec struct {
	*v1.Container

	kind  kind
	index int // among the init containers, if it is one or a sidecar
}

// specOf returns the container with this name in a pod's spec; if there is none, the zero spec, whose kind is unknown.
func specOf(pod *v1.Pod, name string) spec {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name {
			return spec{Container: c, kind: mainContainer}
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		switch {
		case c.Name != name:
		case c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways:
			return spec{Container: c, kind: sidecar, index: i}
		default:
			return spec{Container: c, kind: initContainer, index: i}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := (*v1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon); c.Name == name {
			return spec{Container: c, kind: ephemeral}
		}
	}
	return spec{}
}

// mustOutlive reports whether s is a sidecar that the other container may need, so that it must be stopped later: the other one is
// a regular container, or a sidecar that was started later.
func (s spec) mustOutlive(other spec) bool {
	isLaterSidecar := other.kind == sidecar && other.index > s.index
	return s.kind == sidecar && (other.kind == mainContainer || isLaterSidecar)
}
