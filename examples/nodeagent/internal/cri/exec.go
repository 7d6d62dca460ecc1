package cri

import (
	"context"
	"fmt"
	"slices"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RunInContainer runs cmd in a container, for at most timeout; 0 or less means as
// long as ctx allows. It returns what the command wrote, stdout first and then
// stderr, also with the error of a command that exited with another status than 0;
// that error has neither its arguments nor what it said, which may be secret. A command
// that is out of time is killed, and the error wraps context.DeadlineExceeded.
func (r *Runtime) RunInContainer(ctx context.Context, containerID string, cmd []string, timeout time.Duration) ([]byte, error) {
	request := &runtimeapi.ExecSyncRequest{ContainerId: containerID, Cmd: cmd}
	if timeout > 0 {
		// The client's deadline is exact and ends the command. The runtime's own
		// timeout, which CRI has in whole seconds, ends it when the client is gone.
		request.Timeout = wholeSeconds(timeout)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	response, err := r.runtime.ExecSync(ctx, request)
	if err != nil {
		return nil, containerError("run a command in", containerID, err)
	}
	output := slices.Concat(response.GetStdout(), response.GetStderr())
	if code := response.GetExitCode(); code != 0 {
		return output, fmt.Errorf("command %s exited with %d", program(cmd), code)
	}
	return output, nil
}

// program is the name of a command without its arguments.
func program(cmd []string) string {
	if len(cmd) == 0 {
		return ""
	}
	return cmd[0]
}

// wholeSeconds rounds up: a command is never given less than it was granted, and 0,
// which means without end to the runtime, is not sent for a fraction of a second.
func wholeSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}
