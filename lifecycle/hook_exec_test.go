//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// recordingCommands is a CommandRunner that records its calls and returns fixed values.
type recordingCommands struct {
	output string
	err    error
	calls  []commandCall
}

type commandCall struct {
	id      string
	cmd     []string
	timeout time.Duration
}

func (c *recordingCommands) RunInContainer(_ context.Context, id string, cmd []string, timeout time.Duration) ([]byte, error) {
	c.calls = append(c.calls, commandCall{id, cmd, timeout})
	return []byte(c.output), c.err
}

// execHandler returns an exec hook with a command.
func execHandler(cmd ...string) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: cmd}}
}

// The context of an exec hook has ended or ends now. The command is not run: the time that is left, 0, would mean no limit. The
// hook fails with the context's error.
func TestExecHookWithoutTimeIsNotRun(t *testing.T) {
	for name, test := range map[string]struct {
		context func(parent context.Context) context.Context
		want    error
	}{
		"the context was cancelled": {
			context: func(parent context.Context) context.Context {
				ctx, cancel := context.WithCancelCause(parent)
				cancel(lifecycle.CauseTerminatorClosed)
				return ctx
			},
			want: lifecycle.CauseTerminatorClosed,
		},
		"the deadline is now, but its timer has not fired": {
			context: func(parent context.Context) context.Context { return deadlineIsNow{parent} },
			want:    context.DeadlineExceeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				commands := &recordingCommands{}
				message, err := runHook(test.context(t.Context()), lifecycle.HandlerRunnerOptions{Commands: commands}, execHandler("true"))
				require.ErrorIs(t, err, test.want)
				require.Contains(t, message, "failed - error: "+test.want.Error())
				require.Empty(t, commands.calls)
			})
		})
	}
}

// deadlineIsNow is a context that has not ended although its deadline is now.
type deadlineIsNow struct{ context.Context }

func (deadlineIsNow) Deadline() (time.Time, bool) { return time.Now(), true }

// The output of a command may be secret. Only the message of a hook that has failed has it, never the error, which may be
// logged. The message has at most 64 KiB of the output.
func TestExecHookOutputIsOnlyInTheMessageOfAFailure(t *testing.T) {
	exitedWith1 := errors.New("command 'nginx -s quit' exited with 1")
	run := func(output string, err error) (message string, hookErr error) {
		commands := &recordingCommands{output: output, err: err}
		return runHook(t.Context(), lifecycle.HandlerRunnerOptions{Commands: commands}, execHandler("nginx", "-s", "quit"))
	}
	// The command succeeds.
	message, err := run("bye", nil)
	require.NoError(t, err)
	require.Empty(t, message)

	// It fails.
	message, err = run("a \"quoted\"\nline", exitedWith1)
	require.Equal(t, exitedWith1, err)
	require.Equal(t, `Exec lifecycle hook ([nginx -s quit]) for Container "server" in Pod "web_shop(42)" failed - `+
		`error: command 'nginx -s quit' exited with 1, message: "a \"quoted\"\nline"`, message)

	// It fails with an output of 1 MiB.
	message, _ = run(strings.Repeat("x", 1<<20), exitedWith1)
	require.Contains(t, message, strings.Repeat("x", 64<<10))
	require.Less(t, len(message), 65<<10, "64 KiB of output and the text around it")
}
