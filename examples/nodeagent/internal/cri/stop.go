package cri

import (
	"context"
	"math"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// stopMargin is what a StopContainer may take beyond its timeout before the client
// gives up: the kubelet's, the length of its runtime requests.
const stopMargin = 2 * time.Minute

// StopContainer sends the stop signal of a container, and SIGKILL when it has not
// exited after timeoutSeconds; 0 or less means SIGKILL at once. It returns when the
// container has exited. That it had exited before is no error. One that the runtime
// does not know is lifecycle.ErrContainerNotFound, or no error either: the kubelet's
// interface leaves that to the runtime, and containerd 2.2 has no error where 1.6 had one.
func (r *Runtime) StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error {
	ctx, cancel := context.WithTimeout(ctx, stopDeadline(timeoutSeconds))
	defer cancel()
	request := &runtimeapi.StopContainerRequest{ContainerId: containerID, Timeout: timeoutSeconds}
	if _, err := r.runtime.StopContainer(ctx, request); err != nil {
		return containerError("stop", containerID, err)
	}
	return nil
}

// stopDeadline is how long a StopContainer is waited for; it does not overflow.
func stopDeadline(timeoutSeconds int64) time.Duration {
	grace := graceperiod.Duration(max(timeoutSeconds, 0))
	return min(grace, math.MaxInt64-stopMargin) + stopMargin
}
