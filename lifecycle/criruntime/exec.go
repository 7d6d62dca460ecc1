package criruntime

import (
	"context"
	"fmt"
	"slices"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

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
