package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// errNoCommands is what an exec hook ends with when the runner was made without
// a [CommandRunner].
var errNoCommands = errors.New("no command runner for exec hooks")

// mostOutput is how much of a command's output is kept, in bytes: printing hundreds of
// megabytes would cost an agent its memory.
const mostOutput = 64 << 10

// execHook runs a command in the hook's container.
type execHook struct {
	commands CommandRunner
}

// run runs the command with what is left until ctx's deadline as its timeout;
// the kubelet gives it none. The output is in the message, never in the error.
func (h *execHook) run(ctx context.Context, containerID string, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	output, err := h.command(ctx, containerID, handler.Exec.Command)
	if err == nil {
		return "", nil
	}
	output = output[:min(len(output), mostOutput)]
	return hookFailed(handler, pod, container, err) + fmt.Sprintf(", message: %q", output), err
}

// command runs cmd unless there is nothing to run it with or no time.
func (h *execHook) command(ctx context.Context, containerID string, cmd []string) ([]byte, error) {
	if h.commands == nil {
		return nil, errNoCommands
	}
	timeout, err := timeLeft(ctx)
	if err != nil {
		return nil, err
	}
	return h.commands.RunInContainer(ctx, containerID, cmd, timeout)
}

// timeLeft is the time until ctx's deadline, 0 if it has none, and an error if
// ctx is over: a timeout of 0 would mean that there is no limit.
func timeLeft(ctx context.Context) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0, nil
	}
	if left := time.Until(deadline); left > 0 {
		return left, nil
	}
	return 0, context.DeadlineExceeded // ctx's own timer is about to say so
}
