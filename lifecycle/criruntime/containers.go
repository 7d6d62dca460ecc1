package criruntime

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// stopMargin is how long a StopContainer call may take beyond its timeout, before the client gives up. The kubelet has the same
// margin: its runtime request timeout.
const stopMargin = 2 * time.Minute

// StopContainer sends a container's stop signal, and SIGKILL if it has not exited after timeoutSeconds; 0
// or less means SIGKILL at once. It returns nil once the container has exited, or an error if the runtime has
// not answered 2 min after the timeout. A container that was created and never started is removed, because a
// runtime does not stop it and it could still be started. For an unknown container the error wraps
// lifecycle.ErrContainerNotFound (containerd 1.6) or is nil (containerd 2): CRI allows both.
func (r *Runtime) StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error {
	if err := r.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopCallTimeout(timeoutSeconds))
	defer cancel()
	request := &runtimeapi.StopContainerRequest{ContainerId: containerID, Timeout: timeoutSeconds}
	if _, err := r.client.StopContainer(ctx, request); err != nil {
		return containerError("stop", containerID, err)
	}
	status, err := r.status(ctx, containerID)
	wasNeverStarted := err == nil && status.GetState() == runtimeapi.ContainerState_CONTAINER_CREATED
	if wasNeverStarted {
		err = r.remove(ctx, containerID)
	}
	if err != nil && !isNotFound(err) {
		return containerError("stop", containerID, err)
	}
	return nil
}

// stopCallTimeout returns how long StopContainer waits for the runtime: the timeout plus stopMargin. A
// timeout that is too large becomes the longest duration.
func stopCallTimeout(timeoutSeconds int64) time.Duration {
	grace := graceperiod.Duration(max(timeoutSeconds, 0))
	return min(grace, math.MaxInt64-stopMargin) + stopMargin
}

// status reads a container's status. The error is gRPC's, so that isNotFound and isUnanswered can read its
// code.
func (r *Runtime) status(ctx context.Context, containerID string) (*runtimeapi.ContainerStatus, error) {
	response, err := r.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: containerID})
	return response.GetStatus(), err
}

// Exited returns a channel that is closed when the container has exited or the runtime has forgotten it, usually
// within little more than 1 s: the next list is requested 1 s after the previous one. The channel stays open while the
// runtime does not answer, and if [Runtime.Close] is called. A call of Exited after Close returns nil.
func (r *Runtime) Exited(containerID string) <-chan struct{} {
	if r.check() != nil {
		return nil
	}
	return r.exits.watch(containerID)
}

// RunInContainer runs cmd in a container for at most timeout; 0 or less means that only ctx bounds it. It
// returns the command's stdout followed by its stderr. A nonzero exit status is an error, which does not
// contain the arguments or the output, because they may be secret. A command that exceeds timeout is
// killed, and the error wraps context.DeadlineExceeded. containerd also kills a command when ctx ends, but
// not while it starts the command: such a command runs until it or its container ends.
func (r *Runtime) RunInContainer(ctx context.Context, containerID string, cmd []string, timeout time.Duration) ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	request := &runtimeapi.ExecSyncRequest{ContainerId: containerID, Cmd: cmd}
	if timeout > 0 {
		// The client's deadline ends the command exactly. The runtime's timeout, in whole seconds, ends
		// it if the agent has died.
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

// program returns a command without its arguments, which may be secret.
func program(cmd []string) string {
	if len(cmd) == 0 {
		return ""
	}
	return cmd[0]
}

// wholeSeconds returns d in seconds, rounded up. So a command never gets less time than requested, and
// less than a second does not become 0, which means no timeout in CRI.
func wholeSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}

// remove removes a container that was never started. The error is gRPC's, so that isNotFound can read its code.
func (r *Runtime) remove(ctx context.Context, id string) error {
	_, err := r.client.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	return err
}
