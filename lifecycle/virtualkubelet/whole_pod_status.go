package virtualkubelet

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
)

// setStatus sets the status from a list of the PodRuntime, and that of the containers. A terminal status stays, whatever
// later lists say. Once the final status is being computed (finalizing), the containers no longer change.
func (w *wholePod) setStatus(status *v1.PodStatus) {
	if w.status != nil && (isTerminal(w.status) || reflect.DeepEqual(w.status, status)) {
		return
	}
	w.status = status.DeepCopy()
	if !w.ending.finalizing {
		w.setFromStatus(w.status)
		w.wakeSender()
	}
}

// writeStatus writes the status from the last list into the pod. If the list has no conditions or no start time, the pod's stay.
// If hasEnded is true, the final status is being computed, and the phase must be a terminal one. The caller holds the mutex.
func (w *wholePod) writeStatus(pod *v1.Pod, hasEnded bool) {
	status := &pod.Status
	if w.status != nil {
		conditions, start := status.Conditions, status.StartTime
		w.status.DeepCopyInto(status)
		if len(status.Conditions) == 0 {
			status.Conditions = conditions
		}
		if status.StartTime == nil {
			status.StartTime = start
		}
	}
	w.containers.writeStatus(pod, hasEnded)
	switch {
	case w.status == nil || w.status.Phase == "": // the containers decide the phase
	case isTerminal(w.status) == hasEnded: // both say that the pod has ended, or that it has not
		status.Phase = w.status.Phase
	case hasEnded: // the pod was lost while its last status was that of a running pod
		status.Phase = v1.PodFailed
	default: // listed as ended, but the termination is not over
		status.Phase = v1.PodRunning
	}
}

// isTerminal reports whether the phase says that a pod has ended.
func isTerminal(status *v1.PodStatus) bool {
	return status.Phase == v1.PodSucceeded || status.Phase == v1.PodFailed
}
