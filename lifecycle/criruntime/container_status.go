package criruntime

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerStatus reads the state of a container with one call. The result has State (with
// exit code, reason and times if it has ended), ContainerID in the form runtime://id, ImageID and,
// as the kubelet wrote them, Name and RestartCount. A container that was created and not started is
// Waiting. If the runtime does not know the container, the error wraps
// lifecycle.ErrContainerNotFound.
func (r *Runtime) ContainerStatus(ctx context.Context, containerID string) (v1.ContainerStatus, error) {
	answer, err := r.status(ctx, containerID)
	if err != nil {
		return v1.ContainerStatus{}, containerError("read the status of", containerID, err)
	}
	runtime, err := r.runtimeName(ctx)
	if err != nil {
		return v1.ContainerStatus{}, err
	}
	status := v1.ContainerStatus{
		Name:         containerName(answer),
		ContainerID:  runtime + "://" + containerID,
		ImageID:      answer.GetImageRef(),
		RestartCount: restartCount(answer),
	}
	setState(&status, answer.GetState(), answer.GetStartedAt())
	setEnd(&status, answer)
	return status, nil
}

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
