package stopsignal

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Of returns the stop signal of a container. It is the first of these that is set:
//
//   - the signal in the status of the running container, as reported by the runtime;
//   - lifecycle.stopSignal in the container's spec;
//   - imageSignal, converted by [OfImage];
//   - SIGTERM.
//
// container is the name of a container of any kind. imageSignal is the StopSignal in the
// image's configuration, or "" if unknown. pod may be nil.
func Of(pod *v1.Pod, container, imageSignal string) v1.Signal {
	if pod != nil {
		if signal := ofStatus(&pod.Status, container); signal != "" {
			return signal
		}
		if signal := ofSpec(&pod.Spec, container); signal != "" {
			return signal
		}
	}
	return OfImage(imageSignal)
}

// OfImage converts the StopSignal in an image's configuration. It ignores case, and "SIG" is
// optional: "SIGQUIT" and "quit" become SIGQUIT. A number is returned unchanged; "" becomes
// SIGTERM.
func OfImage(imageSignal string) v1.Signal {
	name := strings.ToUpper(strings.TrimSpace(imageSignal))
	isNumber := strings.Trim(name, "0123456789") == ""
	switch {
	case name == "":
		return v1.SIGTERM
	case strings.HasPrefix(name, "SIG") || isNumber:
		return v1.Signal(name)
	default:
		return v1.Signal("SIG" + name)
	}
}

// ofStatus returns the signal that the runtime has reported for a running container, or "".
func ofStatus(status *v1.PodStatus, container string) v1.Signal {
	for _, s := range running(status) {
		if s.Name == container && s.StopSignal != nil {
			return *s.StopSignal
		}
	}
	return ""
}

// running returns the statuses of all running containers.
func running(status *v1.PodStatus) []v1.ContainerStatus {
	all := slices.Concat(status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses)
	return slices.DeleteFunc(all, func(s v1.ContainerStatus) bool { return s.State.Running == nil })
}

// ofSpec returns the signal in the spec of a container, or "". It does not look at ephemeral
// containers, because the API server rejects a lifecycle for them.
func ofSpec(spec *v1.PodSpec, container string) v1.Signal {
	for _, c := range slices.Concat(spec.Containers, spec.InitContainers) {
		if c.Name == container && c.Lifecycle != nil && c.Lifecycle.StopSignal != nil {
			return *c.Lifecycle.StopSignal
		}
	}
	return ""
}
