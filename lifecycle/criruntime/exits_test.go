package criruntime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

// awaitExit fails the test if the exit is not detected.
func awaitExit(t *testing.T, exited <-chan struct{}) {
	t.Helper()
	select {
	case <-exited:
	case <-time.After(waitAtMost):
		require.Fail(t, "the exit was not detected")
	}
}

// startOne starts a pod with one container as a kubelet does, and returns the container's ID.
func startOne(t *testing.T, runtime *criruntime.Runtime) string {
	t.Helper()
	_, ids := kubeletOf(runtime).runPod(t, onePod("server", 30))
	return ids[0]
}

func kubeletOf(runtime *criruntime.Runtime) kubelet {
	return kubelet{runtimeapi.NewRuntimeServiceClient(runtime.Conn())}
}

func requireRunning(t *testing.T, exited <-chan struct{}) {
	t.Helper()
	select {
	case <-exited:
		require.Fail(t, "an exit was detected that did not happen")
	default:
	}
}

func TestExitIsDetected(t *testing.T) {
	s := newFake()
	runtime := s.dial(t, criruntime.Options{})
	id := startOne(t, runtime)

	exited := runtime.Exited(id)
	require.Eventually(t, func() bool { return len(s.callsOf("ListContainers")) >= 3 }, waitAtMost, pollEvery)
	requireRunning(t, exited)
	s.exit(id, 0)
	awaitExit(t, exited)
	awaitExit(t, runtime.Exited(id)) // the container had exited before the call
	awaitExit(t, runtime.Exited("unknown"))
}

func TestExitIsDetectedAfterAFailureOfTheRuntime(t *testing.T) {
	s := newFake()
	runtime := s.dial(t, criruntime.Options{})
	id := startOne(t, runtime)
	s.fail("ListContainers", status.Error(codes.Unavailable, "restarting"))
	s.exit(id, 0)
	exited := runtime.Exited(id)
	require.Eventually(t, func() bool { return len(s.callsOf("ListContainers")) >= 3 }, waitAtMost, pollEvery)
	requireRunning(t, exited)

	s.fail("ListContainers", nil)
	awaitExit(t, exited)
}

func TestExitIsNotReportedAfterClose(t *testing.T) {
	s := newFake()
	runtime := s.dial(t, criruntime.Options{})
	id := startOne(t, runtime)
	exited := runtime.Exited(id)
	require.NoError(t, runtime.Close())
	s.exit(id, 0)
	requireRunning(t, exited)
	require.Nil(t, runtime.Exited(id), "exits are no longer watched")
}
