package criruntime_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

func TestContainerStatus(t *testing.T) {
	began := time.Unix(1000, 5)
	s := newFake()
	for id, status := range map[string]*runtimeapi.ContainerStatus{
		"created": {Id: "created", State: runtimeapi.ContainerState_CONTAINER_CREATED},
		"running": {Id: "running", Annotations: map[string]string{"io.kubernetes.container.restartCount": "3"}, State: runtimeapi.ContainerState_CONTAINER_RUNNING, StartedAt: began.UnixNano(), ImageRef: "sha256:1"},
		"ended": {
			Id: "ended", State: runtimeapi.ContainerState_CONTAINER_EXITED, ExitCode: 137, Reason: "OOMKilled", Message: "too much",
			StartedAt: began.UnixNano(), FinishedAt: began.Add(time.Second).UnixNano(),
		},
		"never": {Id: "never", State: runtimeapi.ContainerState_CONTAINER_EXITED, ExitCode: 128},
	} {
		s.containers[id] = &fakeContainer{status: status}
	}
	runtime := s.dial(t, criruntime.Options{})
	for id, want := range map[string]v1.ContainerStatus{
		"created": {State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
		"running": {RestartCount: 3, ImageID: "sha256:1", State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(began)}}},
		"ended": {State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: 137, Reason: "OOMKilled", Message: "too much", ContainerID: "fake://ended",
			StartedAt: metav1.NewTime(began), FinishedAt: metav1.NewTime(began.Add(time.Second)),
		}}},
		"never": {State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 128, ContainerID: "fake://never"}}},
	} {
		want.ContainerID = "fake://" + id
		status, err := runtime.ContainerStatus(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, want, status, id)
	}
	_, err := runtime.ContainerStatus(t.Context(), "nowhere")
	require.ErrorIs(t, err, lifecycle.ErrContainerNotFound)
	s.fail("ContainerStatus", errors.New("busy"))
	_, err = runtime.ContainerStatus(t.Context(), "ended")
	require.ErrorContains(t, err, `failed to read the status of container "ended": `)
}
