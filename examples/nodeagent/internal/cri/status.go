package cri

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
)

var _ podruntime.StatusReader = (*Runtime)(nil)

// ContainerStatus reads the status of a container with one call (see
// [podruntime.StatusReader]). The status of a container that was created and not started
// has no State.
func (r *Runtime) ContainerStatus(ctx context.Context, containerID string) (v1.ContainerStatus, error) {
	response, err := r.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: containerID})
	if err != nil {
		return v1.ContainerStatus{}, containerError("read the status of", containerID, err)
	}
	answer := response.GetStatus()
	status := v1.ContainerStatus{
		ContainerID: fmt.Sprintf("%s://%s", r.name, containerID),
		ImageID:     answer.GetImageRef(),
	}
	switch answer.GetState() {
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		status.State.Running = &v1.ContainerStateRunning{StartedAt: timeOf(answer.GetStartedAt())}
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		status.State.Terminated = &v1.ContainerStateTerminated{
			ExitCode:    answer.GetExitCode(),
			Reason:      answer.GetReason(),
			Message:     answer.GetMessage(),
			StartedAt:   timeOf(answer.GetStartedAt()),
			FinishedAt:  timeOf(answer.GetFinishedAt()),
			ContainerID: status.ContainerID,
		}
	default:
	}
	return status, nil
}

// timeOf converts a time of CRI, in nanoseconds since 1970. 0 means that there is none
// and gives the zero time.
func timeOf(nanoseconds int64) metav1.Time {
	if nanoseconds == 0 {
		return metav1.Time{}
	}
	return metav1.NewTime(time.Unix(0, nanoseconds))
}
