package criruntime

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// setState sets the state of a container, without how it has ended. A container whose state the
// runtime does not know may run.
func setState(status *v1.ContainerStatus, state runtimeapi.ContainerState, startedAt int64) {
	status.State = v1.ContainerState{}
	switch state {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		status.State.Waiting = &v1.ContainerStateWaiting{Reason: waitingReason}
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		status.State.Terminated = &v1.ContainerStateTerminated{StartedAt: timeOf(startedAt), ContainerID: status.ContainerID}
	default:
		status.State.Running = &v1.ContainerStateRunning{StartedAt: timeOf(startedAt)}
	}
}

// setEnd sets how a container has ended, if it has.
func setEnd(status *v1.ContainerStatus, answer *runtimeapi.ContainerStatus) {
	if terminated := status.State.Terminated; terminated != nil {
		terminated.ExitCode = answer.GetExitCode()
		terminated.Reason, terminated.Message = answer.GetReason(), answer.GetMessage()
		terminated.StartedAt, terminated.FinishedAt = timeOf(answer.GetStartedAt()), timeOf(answer.GetFinishedAt())
	}
}

// waitingReason is the kubelet's reason of a container that has not been started.
const waitingReason = "ContainerCreating"

// timeOf converts a time of CRI, in nanoseconds since 1970. 0 means that there is none
// and gives the zero time.
func timeOf(nanoseconds int64) metav1.Time {
	if nanoseconds == 0 {
		return metav1.Time{}
	}
	return metav1.NewTime(time.Unix(0, nanoseconds))
}
