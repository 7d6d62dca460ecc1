package virtualkubelet

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kubelet's reasons, message and exit codes.
const (
	reasonCompleted           = "Completed"
	reasonError               = "Error"
	reasonStartError          = "StartError"
	reasonUnknown             = "ContainerStatusUnknown"
	reasonCreating            = "ContainerCreating"
	reasonBackOff             = "CrashLoopBackOff"
	reasonCreateError         = "CreateContainerError"
	reasonUnexpectedAdmission = "UnexpectedAdmissionError"
	messageUnknown            = "The container could not be located when the pod was terminated"

	exitStartError int32 = 128
	exitUnknown    int32 = 137
)

// exitedWith returns the terminated state for an exit code.
func exitedWith(code int32) v1.ContainerStateTerminated {
	if code == 0 {
		return v1.ContainerStateTerminated{Reason: reasonCompleted}
	}
	return v1.ContainerStateTerminated{ExitCode: code, Reason: reasonError}
}

// notStarted returns the terminated state of a container whose start has failed.
func notStarted(err error) v1.ContainerStateTerminated {
	return v1.ContainerStateTerminated{ExitCode: exitStartError, Reason: reasonStartError, Message: err.Error()}
}

// unknownEnd returns the terminated state of a container with an unknown exit code.
func unknownEnd() v1.ContainerStateTerminated {
	return v1.ContainerStateTerminated{ExitCode: exitUnknown, Reason: reasonUnknown, Message: messageUnknown}
}

// statusID returns the container ID with the prefix that a status needs.
func statusID(id string) string { return "virtual-kubelet://" + id }

// writeStatus writes phase, container statuses and readiness into the status of a pod, and keeps other fields. If hasEnded is
// true, all containers have ended for good, and the phase is Succeeded or Failed.
func (cs *containers) writeStatus(pod *v1.Pod, hasEnded bool) {
	status := &pod.Status
	status.Phase = cs.phase(hasEnded)
	status.ObservedGeneration = pod.Generation
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
	for _, c := range cs.all {
		if c.isInit {
			status.InitContainerStatuses = append(status.InitContainerStatuses, c.status())
		} else {
			status.ContainerStatuses = append(status.ContainerStatuses, c.status())
		}
	}
	cs.writeConditions(pod)
}

// phase follows the kubelet's getPhase. When all containers have ended, the phase is Succeeded if every
// regular container has exit code 0, and Failed otherwise. Until then it is Pending while a regular container has never
// run, and else Running.
func (cs *containers) phase(hasEnded bool) v1.PodPhase {
	var hasUnstarted, hasFailed bool // there is a regular container that has never run, or one that has failed
	for _, c := range cs.all {
		if c.isInit {
			continue
		}
		neverRan := c.state.Running == nil && c.state.Terminated == nil && c.lastEnd == nil
		failed := c.state.Terminated != nil && c.state.Terminated.ExitCode != 0
		hasUnstarted, hasFailed = hasUnstarted || neverRan, hasFailed || failed
	}
	switch {
	case hasEnded && hasFailed:
		return v1.PodFailed
	case hasEnded:
		return v1.PodSucceeded
	case hasUnstarted:
		return v1.PodPending
	default:
		return v1.PodRunning
	}
}

// writeConditions writes the conditions ContainersReady and Ready, which are always equal: readiness gates do not
// count. It keeps all other conditions. A pod is ready if all its containers run, and those of a PodRuntime are also listed
// as ready. Plain init containers do not count.
func (cs *containers) writeConditions(pod *v1.Pod) {
	preventsReady := func(c *container) bool {
		isReady := c.isRunning() && (c.reported == nil || c.reported.Ready)
		return !c.isPlainInit() && !isReady
	}
	ready := !slices.ContainsFunc(cs.all, preventsReady)
	if ready != cs.ready {
		cs.ready, cs.readyChangedAt = ready, metav1.Now()
	}
	value, reason := v1.ConditionFalse, "ContainersNotReady"
	if cs.ready {
		value, reason = v1.ConditionTrue, ""
	}
	conditions := slices.Clone(pod.Status.Conditions)
	for _, kind := range []v1.PodConditionType{v1.ContainersReady, v1.PodReady} {
		condition := v1.PodCondition{Type: kind, Status: value, Reason: reason, LastTransitionTime: cs.readyChangedAt, ObservedGeneration: pod.Generation}
		i := slices.IndexFunc(conditions, func(old v1.PodCondition) bool { return old.Type == kind })
		if i < 0 {
			conditions = append(conditions, condition)
		} else {
			conditions[i] = condition
		}
	}
	pod.Status.Conditions = conditions
}
