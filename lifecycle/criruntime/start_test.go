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

// A start fails at one of its steps. StartContainer returns an ID only if it knows that the container runs. What the
// fault leaves is handled when the pod is terminated: a running container is stopped with its grace period of 30 s, and
// one that was not started is removed.
func TestStartContainerAfterEachFault(t *testing.T) {
	const none = -1 // the container does not exist
	for name, c := range map[string]struct {
		fault         func(*fake)
		isStarted     bool                      // StartContainer returns no error
		before, after runtimeapi.ContainerState // of the container, before and after its pod is terminated
	}{
		"success":                 {func(*fake) {}, true, runtimeapi.ContainerState_CONTAINER_RUNNING, runtimeapi.ContainerState_CONTAINER_EXITED},
		"create fails":            {func(s *fake) { s.fail("CreateContainer", status.Error(codes.Internal, "broken")) }, false, none, none},
		"create's answer is lost": {func(s *fake) { s.loseAnswerOf = "CreateContainer" }, false, runtimeapi.ContainerState_CONTAINER_CREATED, none},
		"start fails":             {func(s *fake) { s.fail("StartContainer", status.Error(codes.Unknown, "no such file")) }, false, none, none},
		"start fails, container exited": {func(s *fake) {
			s.onStart = func(c *runtimeapi.ContainerStatus) { c.State = runtimeapi.ContainerState_CONTAINER_EXITED }
			s.loseAnswerOf = "StartContainer"
		}, false, runtimeapi.ContainerState_CONTAINER_EXITED, runtimeapi.ContainerState_CONTAINER_EXITED},
		"start's answer is lost": {func(s *fake) { s.loseAnswerOf = "StartContainer" }, true, runtimeapi.ContainerState_CONTAINER_RUNNING, runtimeapi.ContainerState_CONTAINER_EXITED},
		"start and removal fail": {func(s *fake) {
			s.fail("StartContainer", status.Error(codes.Unavailable, "away"))
			s.fail("RemoveContainer", status.Error(codes.Unavailable, "away"))
		}, false, runtimeapi.ContainerState_CONTAINER_CREATED, none},
		"start's answer and status are lost": {func(s *fake) {
			s.loseAnswerOf = "StartContainer"
			s.fail("ContainerStatus", status.Error(codes.Unavailable, "away"))
		}, false, runtimeapi.ContainerState_CONTAINER_RUNNING, runtimeapi.ContainerState_CONTAINER_EXITED},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFake()
			runtime := s.dial(t, criruntime.Options{})
			terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: runtime, Commands: runtime, Exits: runtime})
			require.NoError(t, err)
			pod, id := onePod("web", 30), ""
			request := createRequest(t, pod, &pod.Spec.Containers[0], kubeletOf(runtime).runSandbox(t, pod), 0)
			c.fault(s)
			err = terminator.Start(t.Context(), pod, "web", func(ctx context.Context) error {
				id, err = runtime.StartContainer(ctx, request)
				return err
			})
			require.Equal(t, c.isStarted, err == nil, "%v", err)
			require.Equal(t, c.isStarted, id == "web-2")
			require.Equal(t, c.before, s.state("web-2"))
			for _, method := range []string{"ContainerStatus", "RemoveContainer"} {
				s.fail(method, nil)
			}

			result, err := terminator.KillPod(t.Context(), pod, lifecycle.Request{})
			require.NoError(t, err)
			want := lifecycle.OutcomeGraceful
			if c.before == none || c.before == runtimeapi.ContainerState_CONTAINER_EXITED {
				want = lifecycle.OutcomeNotFound // nothing to stop
			}
			require.Equal(t, want, result.Outcome())
			require.Equal(t, c.after, s.state("web-2"))
			for _, call := range s.callsOf("StopContainer") {
				require.GreaterOrEqual(t, call.request.(*runtimeapi.StopContainerRequest).GetTimeout(), int64(29), "30 s, or 29 s on a busy machine")
			}
			require.NoError(t, terminator.Close(t.Context()))
		})
	}
}

// The context of a start ends after CreateContainer. The created container must be removed nevertheless, so
// that nothing starts it later.
func TestACancelledStartLeavesNoContainer(t *testing.T) {
	s := newFake()
	runtime, pod := s.dial(t, criruntime.Options{}), onePod("web", 30)
	request := createRequest(t, pod, &pod.Spec.Containers[0], kubeletOf(runtime).runSandbox(t, pod), 0)
	ctx, cancel := context.WithCancel(t.Context())
	s.onStart, s.loseAnswerOf = func(*runtimeapi.ContainerStatus) { cancel() }, "StartContainer"
	_, err := runtime.StartContainer(ctx, request)
	require.Error(t, err)
	require.EqualValues(t, -1, s.state("web-2"), "it was removed")
}
