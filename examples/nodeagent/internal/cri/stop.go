package cri

import (
	"context"
	"errors"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// stopMargin is added to the timeout of a StopContainer to get the client's deadline. It
// is the kubelet's runtime request timeout.
const stopMargin = 2 * time.Minute

// StopContainer sends the stop signal of a container, and SIGKILL if it has not exited
// after timeoutSeconds; 0 or less means SIGKILL at once. It returns when the container
// has exited. A container that had exited before is no error. For one that the runtime
// does not know, the error wraps lifecycle.ErrContainerNotFound (containerd 1.6) or is
// nil (containerd 2.2): CRI leaves this to the runtime.
func (r *Runtime) StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error {
	ctx, cancel := context.WithTimeout(ctx, stopDeadline(timeoutSeconds))
	defer cancel()
	request := &runtimeapi.StopContainerRequest{ContainerId: containerID, Timeout: timeoutSeconds}
	if _, err := r.runtime.StopContainer(ctx, request); err != nil {
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

// StopPod removes the sandboxes of a pod and their containers. Containers that still run
// are killed without grace, so callers stop them first. A pod that the runtime does not
// know is no error.
func (r *Runtime) StopPod(ctx context.Context, pod *v1.Pod) error {
	sandboxes, err := r.listSandboxes(ctx, pod)
	if err != nil {
		return err
	}
	var errs []error
	for _, sandbox := range sandboxes {
		errs = append(errs, r.removeSandbox(ctx, pod, sandbox.GetId()))
	}
	return errors.Join(errs...)
}
