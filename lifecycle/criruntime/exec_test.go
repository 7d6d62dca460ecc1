package criruntime_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

// noTimeout means that RunInContainer sets no limit.
const noTimeout = 0

// RunInContainer turns the reply of ExecSync into output and an error. The output is stdout and then stderr. An exit code
// becomes an error that has neither the arguments nor the output of the command. An unknown container is
// ErrContainerNotFound.
func TestRunInContainer(t *testing.T) {
	const failed = `failed to run a command in container "server-0": `
	for name, test := range map[string]struct {
		reply    *runtimeapi.ExecSyncResponse
		replyErr error
		output   string
		want     string // the text of the error; "": none
	}{
		"success":   {reply: &runtimeapi.ExecSyncResponse{Stdout: []byte("out"), Stderr: []byte("err")}, output: "outerr"},
		"exit code": {reply: &runtimeapi.ExecSyncResponse{Stdout: []byte("out"), Stderr: []byte("err"), ExitCode: 3}, output: "outerr", want: "command ls exited with 3"},
		"not found": {replyErr: status.Error(codes.NotFound, "gone"), want: failed + "container not found: rpc error: code = NotFound desc = gone"},
		"exited":    {replyErr: status.Error(codes.Unknown, "CONTAINER_EXITED"), want: failed + "rpc error: code = Unknown desc = CONTAINER_EXITED"},
	} {
		t.Run(name, func(t *testing.T) {
			cri := newFake()
			cri.exec = func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
				return test.reply, test.replyErr
			}
			output, err := cri.dial(t, criruntime.Options{}).RunInContainer(t.Context(), "server-0", []string{"ls", "-a"}, noTimeout)
			require.Equal(t, test.output, string(output))
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, test.want)
			}
			require.Equal(t, name == "not found", errors.Is(err, lifecycle.ErrContainerNotFound))
			request := cri.callsOf("ExecSync")[0].request.(*runtimeapi.ExecSyncRequest)
			require.Equal(t, "server-0", request.GetContainerId())
			require.Equal(t, []string{"ls", "-a"}, request.GetCmd())
		})
	}
}

// CRI counts in whole seconds, so the request has the timeout rounded up: 1.5 s becomes 2 s, and the longest
// duration of 9223372036.9 s becomes 9223372037 s. The client ends the call at the exact timeout. 0 or less sets no
// limit.
func TestRunInContainerSendsWholeSecondsAndEnforcesTheExactTimeout(t *testing.T) {
	for timeout, seconds := range map[time.Duration]int64{
		-time.Second:            0,
		0:                       0,
		20 * time.Second:        20,
		20*time.Second + 1:      21,
		math.MaxInt64:           9223372037,
		1500 * time.Millisecond: 2,
	} {
		cri := newFake()
		cri.exec = func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
			return &runtimeapi.ExecSyncResponse{}, nil
		}
		_, err := cri.dial(t, criruntime.Options{}).RunInContainer(t.Context(), "server-0", []string{"true"}, timeout)
		require.NoError(t, err)
		call := cri.callsOf("ExecSync")[0]
		require.Equal(t, seconds, call.request.(*runtimeapi.ExecSyncRequest).GetTimeout())
		hasDeadline := call.clientDeadline != 0
		require.Equal(t, timeout > 0, hasDeadline)
		require.LessOrEqual(t, call.clientDeadline, max(timeout, 0))
	}
}

// A command does not end. It is cancelled at its timeout of 0.1 s. A second one, without a timeout, is cancelled when the
// caller's context ends.
func TestRunInContainerEndsACommandAtItsTimeout(t *testing.T) {
	cri := newFake()
	cancelled := make(chan struct{}, 2)
	cri.exec = func(ctx context.Context, _ *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		<-ctx.Done()
		cancelled <- struct{}{}
		return nil, ctx.Err()
	}
	runtime := cri.dial(t, criruntime.Options{})
	_, err := runtime.RunInContainer(t.Context(), "server-0", []string{"sleep", "9"}, 100*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	<-cancelled

	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error)
	go func() {
		_, err := runtime.RunInContainer(ctx, "server-0", []string{"sleep", "9"}, noTimeout)
		returned <- err
	}()
	require.Eventually(t, func() bool { return len(cri.callsOf("ExecSync")) == 2 }, waitAtMost, pollEvery)
	cancel()
	require.ErrorIs(t, <-returned, context.Canceled)
	<-cancelled
}
