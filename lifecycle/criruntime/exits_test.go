package criruntime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

// awaitExit waits until exited is closed. It fails the test if that does not happen.
func awaitExit(t *testing.T, exited <-chan struct{}) {
	t.Helper()
	select {
	case <-exited:
	case <-time.After(waitAtMost):
		require.Fail(t, "the exit was not detected")
	}
}

// startContainer starts a pod with one container as a kubelet does, and returns the container's ID.
func startContainer(t *testing.T, runtime *criruntime.Runtime) string {
	t.Helper()
	_, ids := kubeletOf(runtime).runPod(t, podWithGrace("server", 30))
	return ids[0]
}

// kubeletOf returns a kubelet that starts pods over the runtime's own connection.
func kubeletOf(runtime *criruntime.Runtime) kubelet {
	return kubelet{runtimeapi.NewRuntimeServiceClient(runtime.Conn())}
}

// requireNoExit fails the test if exited is closed, which would report that a running container has
// exited.
func requireNoExit(t *testing.T, exited <-chan struct{}) {
	t.Helper()
	select {
	case <-exited:
		require.Fail(t, "an exit was detected that did not happen")
	default:
	}
}

// The channel that Exited returns stays open while the container runs, and is closed when it exits. For a container that had
// exited before the call, or that is unknown, the channel is closed soon after the call.
func TestExitIsDetected(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	id := startContainer(t, runtime)
	exited := runtime.Exited(id)
	require.Eventually(t, func() bool { return len(cri.callsOf("ListContainers")) >= 3 }, waitAtMost, pollEvery)
	requireNoExit(t, exited)

	cri.exitWith(id, 0)
	awaitExit(t, exited)
	awaitExit(t, runtime.Exited(id))
	awaitExit(t, runtime.Exited("unknown"))
}
