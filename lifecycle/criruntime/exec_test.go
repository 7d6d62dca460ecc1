package criruntime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

// RunInContainer turns the reply of ExecSync into output and an error. The output is stdout and then stderr. An exit code
// becomes an error that has neither the arguments nor the output of the command. An unknown container is
// ErrContainerNotFound.
func TestRunInContainer(t *testing.T) {
	for name, c := range map[string]struct {
		response *runtimeapi.ExecSyncResponse // of the runtime
		err      error                        // of the runtime
		output   string
		want     string // the text of the error; "": none
		is       error  // what the error wraps; nil: not checked
	}{
		"success":   {response: &runtimeapi.ExecSyncResponse{Stdout: []byte("out"), Stderr: []byte("err")}, output: "outerr"},
		"exit code": {response: &runtimeapi.ExecSyncResponse{Stdout: []byte("out"), Stderr: []byte("err"), ExitCode: 3}, output: "outerr", want: `command ls exited with 3`},
		"not found": {err: status.Error(codes.NotFound, "gone"), is: lifecycle.ErrContainerNotFound, want: `failed to run a command in container "server-0": container not found: rpc error: code = NotFound desc = gone`},
		"exited":    {err: status.Error(codes.Unknown, "CONTAINER_EXITED"), want: `failed to run a command in container "server-0": rpc error: code = Unknown desc = CONTAINER_EXITED`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFake()
			s.exec = func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
				return c.response, c.err
			}
			output, err := s.dial(t, criruntime.Options{}).RunInContainer(t.Context(), "server-0", []string{"ls", "-a"}, 0)
			require.Equal(t, c.output, string(output))
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.want)
			}
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			request := s.callsOf("ExecSync")[0].request.(*runtimeapi.ExecSyncRequest)
			require.Equal(t, "server-0", request.GetContainerId())
			require.Equal(t, []string{"ls", "-a"}, request.GetCmd())
			require.Zero(t, request.GetTimeout())
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
		1<<63 - 1:               9223372037,
		1500 * time.Millisecond: 2,
	} {
		s := newFake()
		s.exec = func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
			return &runtimeapi.ExecSyncResponse{}, nil
		}
		runtime := s.dial(t, criruntime.Options{})
		_, err := runtime.RunInContainer(t.Context(), "server-0", []string{"true"}, timeout)
		require.NoError(t, err)
		call := s.callsOf("ExecSync")[0]
		require.Equal(t, seconds, call.request.(*runtimeapi.ExecSyncRequest).GetTimeout())
		require.LessOrEqual(t, call.timeout, max(timeout, 0), "the client's deadline")
		require.Equal(t, timeout <= 0, call.timeout == 0, "0: the client sets no deadline")
	}
}

// The command of an exec hook does not end. It is cancelled at its timeout of 0.1 s. A second one, without a timeout, is
// cancelled when the caller's context ends.
func TestRunInContainerEndsACommandAtItsTimeout(t *testing.T) {
	s := newFake()
	ended := make(chan struct{}, 2)
	s.exec = func(ctx context.Context, _ *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	}
	runtime := s.dial(t, criruntime.Options{})
	_, err := runtime.RunInContainer(t.Context(), "server-0", []string{"sleep", "9"}, 100*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	<-ended

	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		_, err := runtime.RunInContainer(ctx, "server-0", []string{"sleep", "9"}, 0)
		done <- err
	}()
	require.Eventually(t, func() bool { return len(s.callsOf("ExecSync")) == 2 }, waitAtMost, pollEvery)
	cancel(errors.New("shortened"))
	require.ErrorIs(t, <-done, context.Canceled)
	<-ended
}
