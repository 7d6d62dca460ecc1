//go:build go1.25

package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
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

// The output of a failed command is in the message, but never in the error, which may be logged.
func TestExecHookThatFails(t *testing.T) {
	failure := errors.New("command 'nginx -s quit' exited with 1: bye")
	commands := &recordingCommands{output: "a \"quoted\"\nline", err: failure}
	msg, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{Commands: commands}, execHandler("nginx", "-s", "quit"))
	require.ErrorIs(t, err, failure)
	require.Equal(t, `Exec lifecycle hook ([nginx -s quit]) for Container "server" in Pod "web_shop(42)" failed - `+
		`error: command 'nginx -s quit' exited with 1: bye, message: "a \"quoted\"\nline"`, msg)
	require.NotContains(t, err.Error(), "quoted", "the output is for the message only")
}

// A command that succeeds has no message, even if it printed something. Without a deadline its timeout is
// 0: no limit.
func TestExecHookThatSucceeds(t *testing.T) {
	commands := &recordingCommands{output: "bye"}
	msg, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{Commands: commands}, execHandler("true"))
	require.NoError(t, err)
	require.Empty(t, msg)
	require.Equal(t, []commandCall{{containerID, []string{"true"}, 0}}, commands.calls)
}

// A command gets the time until its context's deadline as its timeout: of 7 s, 2.5 s have passed, and 4.5 s
// are left.
func TestExecHookTimeoutIsTheRemainingTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		<-time.After(2500 * time.Millisecond)
		commands := &recordingCommands{}
		_, err := runHook(ctx, lifecycle.HandlerRunnerOptions{Commands: commands}, execHandler("true"))
		require.NoError(t, err)
		require.Equal(t, 4500*time.Millisecond, commands.calls[0].timeout)
	})
}

// A command without remaining time is not run, because a timeout of 0 would mean no limit.
func TestExecHookWithoutTimeIsNotRun(t *testing.T) {
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(lifecycle.CauseTerminatorClosed)
	tests := map[string]struct {
		ctx  context.Context
		want error
	}{
		"the context was cancelled":                            {cancelled, lifecycle.CauseTerminatorClosed},
		"the deadline has passed, but its timer has not fired": {overdue{t.Context()}, context.DeadlineExceeded},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			commands := &recordingCommands{}
			msg, err := runHook(tt.ctx, lifecycle.HandlerRunnerOptions{Commands: commands}, execHandler("true"))
			require.ErrorIs(t, err, tt.want)
			require.Contains(t, msg, "failed - error: "+tt.want.Error())
			require.Empty(t, commands.calls)
		})
	}
}

// overdue is a context that has not ended although its deadline has passed.
type overdue struct{ context.Context }

func (overdue) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }

// Without Commands, an exec hook fails with an error that says so.
func TestExecHookWithoutCommandRunner(t *testing.T) {
	msg, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{}, execHandler("true"))
	require.EqualError(t, err, "no command runner for exec hooks: Commands is nil")
	require.Equal(t, `Exec lifecycle hook ([true]) for Container "server" in Pod "web_shop(42)" failed - error: no command runner for exec hooks: Commands is nil, message: ""`, msg)
}

// Only the first 64 KiB of a command's output are in the message.
func TestExecHookOutputIsBounded(t *testing.T) {
	runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{Commands: endlessCommands{}})
	message, err := runner.Run(t.Context(), "id", &v1.Pod{}, &v1.Container{}, scriptedExec())
	require.ErrorIs(t, err, lifecycletest.ErrScripted)
	require.Contains(t, message, strings.Repeat("x", 64<<10))
	require.Less(t, len(message), 65<<10, "64 KiB of output and the text around it")
}

// endlessCommands is a CommandRunner whose command prints more than 64 KiB.
type endlessCommands struct{}

func (endlessCommands) RunInContainer(context.Context, string, []string, time.Duration) ([]byte, error) {
	return bytes.Repeat([]byte("x"), 1<<20), lifecycletest.ErrScripted
}
