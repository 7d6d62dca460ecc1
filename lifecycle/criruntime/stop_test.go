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
		cri := newFake()
		runtime := cri.dial(t, criruntime.Options{})
		id := startContainer(t, runtime)
		require.NoError(t, runtime.StopContainer(t.Context(), id, seconds))

		calls := cri.callsOf("StopContainer")
		require.Len(t, calls, 1)
		request := calls[0].request.(*runtimeapi.StopContainerRequest)
		require.Equal(t, id, request.GetContainerId())
		require.Equal(t, seconds, request.GetTimeout())
		require.InDelta(t, float64(seconds)+120, calls[0].clientDeadline.Seconds(), 30)
	}
}

// The smallest and the largest timeout must not overflow into a deadline that has passed.
func TestStopContainerAcceptsExtremeTimeouts(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	for _, seconds := range []int64{math.MinInt64, -1, math.MaxInt64} {
		require.ErrorIs(t, runtime.StopContainer(t.Context(), "unknown", seconds), lifecycle.ErrContainerNotFound)
	}
	for _, call := range cri.callsOf("StopContainer") {
		hasNoDeadline := call.clientDeadline == 0
		require.True(t, hasNoDeadline || call.clientDeadline > time.Minute, "%v", call.clientDeadline)
	}
}

// StopContainer returns ErrContainerNotFound only for an unknown container, because a terminator takes this error for a
// success. Another failure is another error.
func TestStopContainerDistinguishesAnUnknownContainerFromAFailure(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	err := runtime.StopContainer(t.Context(), "unknown", 1)
	require.ErrorIs(t, err, lifecycle.ErrContainerNotFound)
	require.ErrorContains(t, err, `failed to stop container "unknown"`)

	cri.fail("StopContainer", status.Error(codes.Internal, "broken"))
	err = runtime.StopContainer(t.Context(), "unknown", 1)
	require.NotErrorIs(t, err, lifecycle.ErrContainerNotFound)
	require.EqualError(t, err, `failed to stop container "unknown": rpc error: code = Internal desc = broken`)
}

// A container was created and never started. The runtime does not stop it, though it could still be started, so StopContainer
// removes it. If the removal fails, StopContainer does too, and the container does not count as exited.
func TestStopContainerRemovesACreatedContainer(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	kubelet, pod := kubeletOf(runtime), podWithGrace("server", 30)
	id := kubelet.create(t, pod, &pod.Spec.Containers[0], kubelet.runSandbox(t, pod), firstRun)
	exited := runtime.Exited(id)
	cri.fail("RemoveContainer", status.Error(codes.Unknown, "container is in starting state"))
	require.ErrorContains(t, runtime.StopContainer(t.Context(), id, 30), "starting state")
	requireNoExit(t, exited)

	cri.succeed("RemoveContainer")
	require.NoError(t, runtime.StopContainer(t.Context(), id, 30))
	awaitExit(t, exited)
}

// StopContainer does not remove a container that was started.
func TestStopContainerKeepsAStartedContainer(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	id := startContainer(t, runtime)
	require.NoError(t, runtime.StopContainer(t.Context(), id, 30))
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_EXITED, cri.state(id))
}

// A pod has two sandboxes, and another pod has its name but not its UID. StopPodSandbox stops both sandboxes of the pod, and
// not the other pod's.
func TestStopPodSandboxStopsAllSandboxesOfThePod(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	pod, other := podWithGrace("web", 30), podWithGrace("web", 30)
	other.UID = "another"
	first, _ := kubeletOf(runtime).runPod(t, pod)
	second := kubeletOf(runtime).runSandbox(t, pod)
	ofOther, _ := kubeletOf(runtime).runPod(t, other)
	require.NoError(t, runtime.StopPodSandbox(t.Context(), pod))
	require.Equal(t, runtimeapi.PodSandboxState_SANDBOX_NOTREADY, cri.sandboxes[first].GetState())
	require.Equal(t, runtimeapi.PodSandboxState_SANDBOX_NOTREADY, cri.sandboxes[second].GetState())
	require.Equal(t, runtimeapi.PodSandboxState_SANDBOX_READY, cri.sandboxes[ofOther].GetState())
}

// StopPodSandbox returns a failure of the runtime. An unknown pod, or a sandbox that no longer exists, is no error.
func TestStopPodSandboxErrors(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	pod, broken := podWithGrace("web", 30), status.Error(codes.Internal, "broken")
	sandbox, _ := kubeletOf(runtime).runPod(t, pod)
	require.NoError(t, runtime.StopPodSandbox(t.Context(), podWithGrace("unknown", 30)))
	cri.fail("StopPodSandbox", status.Error(codes.NotFound, "gone meanwhile"))
	require.NoError(t, runtime.StopPodSandbox(t.Context(), pod))

	cri.fail("StopPodSandbox", broken)
	require.ErrorContains(t, runtime.StopPodSandbox(t.Context(), pod), `failed to stop sandbox "`+sandbox+`" of pod shop/web: rpc error: code = Internal desc = broken`)
	cri.fail("ListPodSandbox", broken)
	require.EqualError(t, runtime.StopPodSandbox(t.Context(), pod), `failed to list the sandboxes of pod shop/web: rpc error: code = Internal desc = broken`)
}
