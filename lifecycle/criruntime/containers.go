package criruntime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// stopMargin is added to the timeout of a StopContainer to get the client's deadline. It
// is the kubelet's runtime request timeout.
const stopMargin = 2 * time.Minute

// removeTimeout bounds the removal of a container that could not be started.
const removeTimeout = 10 * time.Second

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
		err = r.remove(ctx, containerID)
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

// Exited returns a channel that is closed once the container has exited or the runtime does not know
// it, at most 200 ms later. While the runtime does not answer, and after [Runtime.Close], it stays
// open. A call after Close returns nil: exits are not watched any more.
func (r *Runtime) Exited(containerID string) <-chan struct{} { return r.exits.watch(containerID) }

// RunInContainer runs cmd in a container for at most timeout; 0 or less means that only
// ctx bounds it. It returns the output of the command, stdout first and then stderr, also
// if the command exits with another status than 0. That error contains neither the
// arguments nor the output, which may be secret. A command that runs out of time is
// killed, and the error wraps context.DeadlineExceeded.
func (r *Runtime) RunInContainer(ctx context.Context, containerID string, cmd []string, timeout time.Duration) ([]byte, error) {
	request := &runtimeapi.ExecSyncRequest{ContainerId: containerID, Cmd: cmd}
	if timeout > 0 {
		// The client's deadline is exact and ends the command. The runtime's own timeout,
		// in whole seconds, ends it if the agent has died.
		request.Timeout = wholeSeconds(timeout)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	response, err := r.client.ExecSync(ctx, request)
	if err != nil {
		return nil, containerError("run a command in", containerID, err)
	}
	output := slices.Concat(response.GetStdout(), response.GetStderr())
	if code := response.GetExitCode(); code != 0 {
		return output, fmt.Errorf("command %s exited with %d", program(cmd), code)
	}
	return output, nil
}

// program returns the program of a command, without its arguments.
func program(cmd []string) string {
	if len(cmd) == 0 {
		return ""
	}
	return cmd[0]
}

// wholeSeconds rounds up, so that a command never gets less time than it was granted. A
// fraction of a second must not become 0, which means no timeout to the runtime.
func wholeSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}

// StartContainer creates a container and starts it. It is for agents that start containers themselves,
// in the function that they give to [lifecycle.Terminator.Start].
//
// A container that was created and could not be started is removed, so that [Runtime.Running] does not
// list it. One whose start was answered with an error and that runs all the same is no error. If the
// runtime cannot say which it is, the container stays, and is stopped with its pod.
func (r *Runtime) StartContainer(ctx context.Context, request *runtimeapi.CreateContainerRequest) (id string, err error) {
	created, err := r.client.CreateContainer(ctx, request)
	if err != nil {
		return "", fmt.Errorf("failed to create container %q: %w", request.GetConfig().GetMetadata().GetName(), known(err))
	}
	id = created.GetContainerId()
	_, err = r.client.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id})
	if err == nil {
		return id, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout) // ctx may have ended the start
	defer cancel()
	current, statusErr := r.status(ctx, id)
	if current.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING {
		return id, nil
	}
	if statusErr == nil && current.GetState() == runtimeapi.ContainerState_CONTAINER_CREATED {
		statusErr = r.remove(ctx, id)
	}
	return "", errors.Join(containerError("start", id, err), statusErr)
}

// remove removes a container.
func (r *Runtime) remove(ctx context.Context, id string) error {
	_, err := r.client.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	return err
}
