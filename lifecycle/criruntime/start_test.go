package criruntime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

// Whatever comes of a start, its pod can be terminated, and a container that runs is stopped with
// its grace.
func TestStartContainer(t *testing.T) {
	for name, c := range map[string]struct {
		fault   func(*fake)
		created bool
		after   runtimeapi.ContainerState // of the container, after its pod was terminated; -1: there is none
	}{
		"success":                    {func(*fake) {}, true, runtimeapi.ContainerState_CONTAINER_EXITED},
		"create fails":               {func(s *fake) { s.fail("CreateContainer", status.Error(codes.Internal, "broken")) }, false, -1},
		"create's answer is lost":    {func(s *fake) { s.loseAnswerOf = "CreateContainer" }, false, runtimeapi.ContainerState_CONTAINER_CREATED},
		"start fails":                {func(s *fake) { s.fail("StartContainer", status.Error(codes.Unavailable, "away")) }, true, -1},
		"start's answer is lost":     {func(s *fake) { s.loseAnswerOf = "StartContainer" }, true, runtimeapi.ContainerState_CONTAINER_EXITED},
		"start finds it removed":     {func(s *fake) { s.fail("StartContainer", status.Error(codes.NotFound, "gone")) }, true, runtimeapi.ContainerState_CONTAINER_CREATED},
		"start is refused for good ": {func(s *fake) { s.fail("StartContainer", status.Error(codes.Unknown, "no such file")) }, true, -1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFake()
			runtime := s.dial(t, criruntime.Options{})
			terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: runtime, Commands: runtime, Exits: runtime})
			require.NoError(t, err)
			pod := onePod("web", 30)
			request := createRequest(t, pod, &pod.Spec.Containers[0], kubeletOf(runtime).runSandbox(t, pod), 0)
			c.fault(s)
			life, id := terminator.Pod(pod), ""
			err = life.Start(t.Context(), "web", func(ctx context.Context) (string, error) {
				id, err = runtime.StartContainer(ctx, request)
				return id, err
			})
			require.Equal(t, name == "success", err == nil, "%v", err)
			require.Equal(t, c.created, id != "")
			if !c.created {
				require.ErrorIs(t, err, lifecycle.ErrContainerNotFound, "nothing was started")
			}

			result, err := life.Kill(t.Context(), lifecycle.Request{Complete: true})
			require.NoError(t, err)
			require.NotEqual(t, lifecycle.RuntimeStuck, result.Outcome())
			if id == "" {
				id = "web-2"
			}
			require.Equal(t, c.after, s.state(id))
			for _, call := range s.callsOf("StopContainer") {
				require.GreaterOrEqual(t, call.request.(*runtimeapi.StopContainerRequest).GetTimeout(), int64(29))
			}
			require.NoError(t, terminator.Close(t.Context()))
		})
	}
}
