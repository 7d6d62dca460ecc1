package criruntime

import (
	"context"
	"math"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// stopMargin is added to the timeout of a StopContainer to get the client's deadline. It
// is the kubelet's runtime request timeout.
const stopMargin = 2 * time.Minute

// StopContainer sends the stop signal of a container, and SIGKILL if it has not exited
// after timeoutSeconds; 0 or less means SIGKILL at once. It returns when the container
// has exited. A container that had exited before is no error. One that was created and
// never started is removed, because a runtime does not stop it, and it could still be
// started. For one that the runtime does not know, the error wraps
// lifecycle.ErrContainerNotFound (containerd 1.6) or is nil (containerd 2): CRI leaves this
// to the runtime.
func (r *Runtime) StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error {
	ctx, cancel := context.WithTimeout(ctx, stopDeadline(timeoutSeconds))
	defer cancel()
	request := &runtimeapi.StopContainerRequest{ContainerId: containerID, Timeout: timeoutSeconds}
	if _, err := r.client.StopContainer(ctx, request); err != nil {
		return containerError("stop", containerID, err)
	}
	status, err := r.status(ctx, containerID)
	if err == nil && status.GetState() == runtimeapi.ContainerState_CONTAINER_CREATED {
		_, err = r.client.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: containerID})
	}
	if err != nil && !isNotFound(err) {
		return containerError("stop", containerID, err)
	}
	return nil
}

// stopDeadline returns how long StopContainer waits for the runtime. Large timeouts do
// not overflow.
func stopDeadline(timeoutSeconds int64) time.Duration {
	grace := graceperiod.Duration(max(timeoutSeconds, 0))
	return min(grace, math.MaxInt64-stopMargin) + stopMargin
}

// status reads the status of a container. Its error is that of gRPC.
func (r *Runtime) status(ctx context.Context, containerID string) (*runtimeapi.ContainerStatus, error) {
	response, err := r.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: containerID})
	return response.GetStatus(), err
}
