package lifecycle

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// defaultStopSignal is what a runtime sends where neither pod nor image ask for
// another.
const defaultStopSignal = v1.SIGTERM

// StopSignal is the signal that a container is stopped with (KEP-4960): that of its
// spec, if the gate [ContainerStopSignals] is on, else that of its image, else
// SIGTERM. image is the StopSignal of the image's configuration, "" for none; "QUIT"
// is given as "SIGQUIT", a number as it is. A nil container has no wish.
//
// A runtime takes the signal when the container is created and uses it in
// StopContainer; nothing is signalled here.
func (tr *Terminator) StopSignal(container *v1.Container, image string) v1.Signal {
	if tr.signals && container != nil && container.Lifecycle != nil && container.Lifecycle.StopSignal != nil {
		return *container.Lifecycle.StopSignal
	}
	image = strings.ToUpper(strings.TrimSpace(image))
	switch {
	case image == "":
		return defaultStopSignal
	case strings.HasPrefix(image, "SIG") || strings.Trim(image, "0123456789") == "":
		return v1.Signal(image)
	default:
		return v1.Signal("SIG" + image)
	}
}

// CountStopSignals shows in the metrics how many of the containers that run in the
// pods' status are stopped with which signal (kubelet_pod_stop_signals_count,
// KEP-4960): that of their status, where an agent reports the effective one, else
// that of their spec, else SIGTERM. It replaces what was shown before; an agent calls
// it whenever its pods have changed.
func (tr *Terminator) CountStopSignals(pods []*v1.Pod) {
	counts := map[string]int{}
	for _, pod := range pods {
		for _, status := range slices.Concat(pod.Status.ContainerStatuses,
			pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses) {
			if status.State.Running != nil {
				counts[string(tr.signalOf(pod, status))]++
			}
		}
	}
	tr.opts.Metrics.StopSignals(counts)
}

// signalOf is the signal of a container by its status, or by its spec.
func (tr *Terminator) signalOf(pod *v1.Pod, status v1.ContainerStatus) v1.Signal {
	if status.StopSignal != nil {
		return *status.StopSignal
	}
	spec, _ := findContainer(pod, status.Name)
	return tr.StopSignal(spec, "")
}
