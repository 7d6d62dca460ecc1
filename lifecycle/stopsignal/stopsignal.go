package stopsignal

import (
	"iter"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Default is what a runtime sends where neither the pod nor the image asks for another
// signal.
const Default = v1.SIGTERM

// Of is the signal that a container of a pod is stopped with. It is, the first that is
// set,
//
//   - that of the container's status, while it shows the container as running: what
//     the runtime says that it will send;
//   - that of the container's spec, lifecycle.stopSignal;
//   - imageSignal, read as [OfImage] reads it;
//   - [Default].
//
// container is the name of a container of any kind. imageSignal is the StopSignal of the
// image's configuration, not the image's name; "" where it is not known.
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

// OfImage is the signal that an image asks for, by the StopSignal of its configuration,
// where upper and lower case are one: "SIGQUIT" and "quit" are SIGQUIT, a number is given
// as it is, and "" is [Default].
func OfImage(imageSignal string) v1.Signal {
	name := strings.ToUpper(strings.TrimSpace(imageSignal))
	switch {
	case name == "":
		return Default
	case strings.HasPrefix(name, "SIG") || strings.Trim(name, "0123456789") == "":
		return v1.Signal(name)
	default:
		return v1.Signal("SIG" + name)
	}
}

// ofStatus is the signal that the status of a running container shows, "" if none.
func ofStatus(status *v1.PodStatus, container string) v1.Signal {
	for s := range running(status) {
		if s.Name == container && s.StopSignal != nil {
			return *s.StopSignal
		}
	}
	return ""
}

// running are the statuses of the containers of all kinds that run.
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

// ofSpec is the signal that a container asks for, "" if none. Ephemeral containers
// cannot ask: the API refuses a lifecycle there.
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
