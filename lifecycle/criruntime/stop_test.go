package criruntime_test

import (
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

// The client's deadline for a StopContainer call is 2 minutes after the call's timeout, as the kubelet's. The tolerance of
// 30 s is for a busy machine.
func TestStopContainerWaitsTwoMinutesLongerThanItsTimeout(t *testing.T) {
	for _, seconds := range []int64{0, 30, 3600} {
		s := newFake()
		runtime := s.dial(t, criruntime.Options{})
		id := startOne(t, runtime)
		require.NoError(t, runtime.StopContainer(t.Context(), id, seconds))

		calls := s.callsOf("StopContainer")
		require.Len(t, calls, 1)
		request := calls[0].request.(*runtimeapi.StopContainerRequest)
		require.Equal(t, id, request.GetContainerId())
		require.Equal(t, seconds, request.GetTimeout())
		require.InDelta(t, float64(seconds)+120, calls[0].timeout.Seconds(), 30, "the client's deadline")
	}
}

// The smallest and the largest timeout must not overflow into a deadline that has passed.
func TestStopContainerAcceptsExtremeTimeouts(t *testing.T) {
	s := newFake()
	runtime := s.dial(t, criruntime.Options{})
	for _, seconds := range []int64{math.MinInt64, -1, math.MaxInt64} {
		require.ErrorIs(t, runtime.StopContainer(t.Context(), "unknown", seconds), lifecycle.ErrContainerNotFound)
	}
	for _, call := range s.callsOf("StopContainer") {
		hasNoDeadline := call.timeout == 0
		require.True(t, hasNoDeadline || call.timeout > time.Minute, "%v", call.timeout)
	}
}

// StopContainer returns ErrContainerNotFound only for an unknown container, because a terminator takes this error for a
// success. Another failure is another error.
func TestStopContainerDistinguishesAnUnknownContainerFromAFailure(t *testing.T) {
	s := newFake()
	runtime := s.dial(t, criruntime.Options{})
	err := runtime.StopContainer(t.Context(), "unknown", 1)
	require.ErrorIs(t, err, lifecycle.ErrContainerNotFound)
	require.ErrorContains(t, err, `failed to stop container "unknown"`)

	s.fail("StopContainer", status.Error(codes.Internal, "broken"))
	err = runtime.StopContainer(t.Context(), "unknown", 1)
	require.NotErrorIs(t, err, lifecycle.ErrContainerNotFound)
	require.EqualError(t, err, `failed to stop container "unknown": rpc error: code = Internal desc = broken`)
}

// A container was created and never started. The runtime does not stop it, though it could still be started, so StopContainer
// removes it. If the removal fails, StopContainer does too, and the container does not count as exited. A container that
// was started is not removed.
func TestStopContainerRemovesACreatedContainer(t *testing.T) {
	s := newFake()
	runtime := s.dial(t, criruntime.Options{})
	kubelet, pod := kubeletOf(runtime), onePod("server", 30)
	id := kubelet.create(t, pod, &pod.Spec.Containers[0], kubelet.runSandbox(t, pod), firstRun)
	exited := runtime.Exited(id)

	s.fail("RemoveContainer", status.Error(codes.Unknown, "container is in starting state"))
	require.ErrorContains(t, runtime.StopContainer(t.Context(), id, 30), "starting state")
	requireRunning(t, exited)
	s.succeed("RemoveContainer")
	require.NoError(t, runtime.StopContainer(t.Context(), id, 30))
	awaitExit(t, exited)

	started := startOne(t, runtime)
	require.NoError(t, runtime.StopContainer(t.Context(), started, 30))
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_EXITED, s.state(started), "a started container is not removed")
}

// A pod has two sandboxes, and another pod has its name but not its UID. StopPodSandbox stops both sandboxes of the pod, and
// not the other pod's. An unknown pod, or a sandbox that no longer exists, is no error; a failure of the runtime is.
func TestStopPodSandboxStopsAllSandboxesOfThePod(t *testing.T) {
	s := newFake()
	runtime := s.dial(t, criruntime.Options{})
	pod, other := onePod("web", 30), onePod("web", 30)
	other.UID = "another"
	first, _ := kubeletOf(runtime).runPod(t, pod)
	second := kubeletOf(runtime).runSandbox(t, pod)
	stays, _ := kubeletOf(runtime).runPod(t, other)

	require.NoError(t, runtime.StopPodSandbox(t.Context(), pod))
	for id, state := range map[string]runtimeapi.PodSandboxState{
		first: runtimeapi.PodSandboxState_SANDBOX_NOTREADY, second: runtimeapi.PodSandboxState_SANDBOX_NOTREADY, stays: runtimeapi.PodSandboxState_SANDBOX_READY,
	} {
		require.Equal(t, state, s.sandboxes[id].GetState(), id)
	}
	require.NoError(t, runtime.StopPodSandbox(t.Context(), onePod("unknown", 30)))

	broken := status.Error(codes.Internal, "broken")
	s.fail("StopPodSandbox", broken)
	require.ErrorContains(t, runtime.StopPodSandbox(t.Context(), other), `failed to stop sandbox "`+stays+`" of pod shop/web: rpc error: code = Internal desc = broken`)
	s.fail("StopPodSandbox", status.Error(codes.NotFound, "gone meanwhile"))
	require.NoError(t, runtime.StopPodSandbox(t.Context(), other))
	s.fail("ListPodSandbox", broken)
	require.EqualError(t, runtime.StopPodSandbox(t.Context(), other), `failed to list the sandboxes of pod shop/web: rpc error: code = Internal desc = broken`)
}
