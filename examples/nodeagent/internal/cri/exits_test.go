package cri_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
)

const (
	// waitAtMost is when a test gives up. It is far longer than any time a test asserts,
	// because the machine may be busy.
	waitAtMost = 20 * time.Second
	pollEvery  = 5 * time.Millisecond
)

// awaitExit waits for the exit of a container and fails the test if it is not noticed.
func awaitExit(t *testing.T, exited <-chan struct{}) {
	t.Helper()
	select {
	case <-exited:
	case <-time.After(waitAtMost):
		require.Fail(t, "the exit was not noticed")
	}
}

func requireRunning(t *testing.T, exited <-chan struct{}) {
	t.Helper()
	select {
	case <-exited:
		require.Fail(t, "an exit was noticed that did not happen")
	default:
	}
}

func TestExitIsNoticedByPolling(t *testing.T) {
	s := newStub()
	runtime := s.connect(t, cri.Options{})
	containers, err := runtime.StartPod(t.Context(), onePod(nil))
	require.NoError(t, err)

	exited := runtime.Exited(containers[0].ID)
	require.Eventually(t, func() bool { return len(s.callsOf("ListContainers")) >= 3 }, waitAtMost, pollEvery)
	requireRunning(t, exited)
	s.exit(containers[0].ID, 0)
	awaitExit(t, exited)
	awaitExit(t, runtime.Exited(containers[0].ID)) // the container had exited before the call
	awaitExit(t, runtime.Exited("unknown"))
}

func TestExitIsNoticedByTheStreamOfEvents(t *testing.T) {
	for _, kind := range []runtimeapi.ContainerEventType{
		runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT,
	} {
		s := newStub()
		s.events = make(chan *runtimeapi.ContainerEventResponse)
		runtime := s.connect(t, cri.Options{})
		containers, err := runtime.StartPod(t.Context(), onePod(nil))
		require.NoError(t, err)
		exited := runtime.Exited(containers[0].ID)

		for _, other := range []*runtimeapi.ContainerEventResponse{
			{ContainerId: containers[0].ID, ContainerEventType: runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT},
			{ContainerId: "another", ContainerEventType: kind},
		} {
			s.events <- other
		}
		requireRunning(t, exited)

		// Lists fail, so only the event can report the exit.
		s.fail("ListContainers", status.Error(codes.Internal, "broken"))
		s.events <- &runtimeapi.ContainerEventResponse{ContainerId: containers[0].ID, ContainerEventType: kind}
		awaitExit(t, exited)
	}
}

func TestExitIsNoticedAfterTheStreamHasEnded(t *testing.T) {
	s := newStub()
	events := make(chan *runtimeapi.ContainerEventResponse)
	s.events = events
	runtime := s.connect(t, cri.Options{})
	containers, err := runtime.StartPod(t.Context(), onePod(nil))
	require.NoError(t, err)
	exited := runtime.Exited(containers[0].ID)
	s.events <- &runtimeapi.ContainerEventResponse{ContainerId: "another"}
	close(events)

	s.mu.Lock()
	s.exitLocked(containers[0].ID, 0)
	s.mu.Unlock()
	awaitExit(t, exited)
}

func TestExitIsNoticedAfterTheRuntimeFailedForAWhile(t *testing.T) {
	s := newStub()
	runtime := s.connect(t, cri.Options{})
	containers, err := runtime.StartPod(t.Context(), onePod(nil))
	require.NoError(t, err)
	s.fail("ListContainers", status.Error(codes.Unavailable, "restarting"))
	s.exit(containers[0].ID, 0)
	exited := runtime.Exited(containers[0].ID)
	require.Eventually(t, func() bool { return len(s.callsOf("ListContainers")) >= 3 }, waitAtMost, pollEvery)
	requireRunning(t, exited)

	s.fail("ListContainers", nil)
	awaitExit(t, exited)
}

func TestExitIsNotReportedAfterClose(t *testing.T) {
	s := newStub()
	runtime := s.connect(t, cri.Options{})
	require.NoError(t, runtime.Close())
	requireRunning(t, runtime.Exited("unknown"))
	require.Empty(t, s.callsOf("ListContainers"))
}
