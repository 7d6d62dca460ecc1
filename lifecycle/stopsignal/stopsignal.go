package stopsignal

import (
	"iter"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Of returns the stop signal of a container, which is the first of these that is set:
//
//   - the signal in the container's status, if the container runs: the runtime has
//     reported that it will send it;
//   - lifecycle.stopSignal in the container's spec;
//   - imageSignal, converted by [OfImage];
//   - SIGTERM.
//
// container is the name of a container of any kind. imageSignal is the StopSignal in the
// configuration of the image; "" if it is not known. pod may be nil.
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

// OfImage converts the StopSignal in the configuration of an image. The case does not
// matter, and "SIG" may be missing: "SIGQUIT" and "quit" give SIGQUIT. A number is returned
// unchanged, and "" gives SIGTERM.
func OfImage(imageSignal string) v1.Signal {
	name := strings.ToUpper(strings.TrimSpace(imageSignal))
	switch {
	case name == "":
		return v1.SIGTERM
	case strings.HasPrefix(name, "SIG") || strings.Trim(name, "0123456789") == "":
		return v1.Signal(name)
	default:
		return v1.Signal("SIG" + name)
	}
}

// ofStatus returns the signal in the status of a running container, "" if there is none.
func ofStatus(status *v1.PodStatus, container string) v1.Signal {
	for s := range running(status) {
		if s.Name == container && s.StopSignal != nil {
			return *s.StopSignal
		}
	}
	return ""
}

// running yields the statuses of the containers that run, of all kinds.
func running(status *v1.PodStatus) iter.Seq[*v1.ContainerStatus] {
	return func(yield func(*v1.ContainerStatus) bool) {
		for _, list := range [][]v1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses} {
			for i := range list {
				if list[i].State.Running != nil && !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// ofSpec returns the signal in the spec of a container, "" if there is none. Ephemeral
// containers have none, because the API server refuses a lifecycle for them.
func ofSpec(spec *v1.PodSpec, container string) v1.Signal {
	for _, list := range [][]v1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			if c := &list[i]; c.Name == container && c.Lifecycle != nil && c.Lifecycle.StopSignal != nil {
				return *c.Lifecycle.StopSignal
			}
		}
	}
	return ""
}
