package cri_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/containerdtest"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
)

const (
	eventsMethod = "/runtime.v1.RuntimeService/GetContainerEvents"
	listMethod   = "/runtime.v1.RuntimeService/ListContainers"
)

// Exits of a runtime that sends events are noticed although it refuses every list, and
// exits of one that sends none although it refuses the stream of events.
func TestContainerdExitsAreNoticedByEventsOrByPolling(t *testing.T) {
	for name, c := range map[string]struct {
		build   func(*testing.T) containerdtest.Build
		refused string
	}{
		"containerd of PATH, polled":     {func(*testing.T) containerdtest.Build { return containerdtest.Build{} }, eventsMethod},
		"containerd 2.2, by events":      {func(t *testing.T) containerdtest.Build { return containerdtest.V22(t) }, listMethod},
		"containerd 2.2, without events": {func(t *testing.T) containerdtest.Build { return containerdtest.V22(t) }, eventsMethod},
		"containerd 2.4, by events":      {func(t *testing.T) containerdtest.Build { return containerdtest.V24(t) }, listMethod},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := c.build(t).Start(t, containerdtest.Image{Name: "obedient:1", Command: []string{"/bin/sh", "-c", obedient}})
			runtime, err := cri.New(t.Context(), server.Proxy(t, c.refused), cri.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, runtime.Close()) })
			containers, err := runtime.StartPod(t.Context(), realPod("exits",
				v1.Container{Name: "main", Image: "obedient:1"}, v1.Container{Name: "other", Image: "obedient:1"}))
			require.NoError(t, err)
			exited, other := runtime.Exited(containers[0].ID), runtime.Exited(containers[1].ID)
			requireRunning(t, exited)
			require.NoError(t, runtime.StopContainer(t.Context(), containers[0].ID, 60))
			awaitExit(t, exited)
			requireRunning(t, other)
		})
	}
}

// The stop signal of the pod's spec takes precedence over that of the image. Before
// version 2.4 containerd accepts it without an error and sends that of the image.
func TestContainerdSendsTheStopSignalOfThePod(t *testing.T) {
	for name, c := range map[string]struct {
		build func(*testing.T) containerdtest.Build
		code  int32
	}{
		"containerd of PATH": {func(*testing.T) containerdtest.Build { return containerdtest.Build{} }, 7},
		"containerd 2.2":     {func(t *testing.T) containerdtest.Build { return containerdtest.V22(t) }, 7},
		"containerd 2.4":     {func(t *testing.T) containerdtest.Build { return containerdtest.V24(t) }, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := newContainerd(t, c.build(t))
			pod := realPod("signalled", v1.Container{Name: "main", Image: "obedient:1", Lifecycle: &v1.Lifecycle{StopSignal: ptr.To(v1.SIGQUIT)}})
			pod.Spec.OS = &v1.PodOS{Name: v1.Linux}
			containers := shared.startReady(t, pod)
			require.NoError(t, shared.runtime.StopContainer(t.Context(), containers[0].ID, 60))
			require.Equal(t, c.code, shared.status(t, containers[0].ID).GetExitCode(), "7 is the trap of TERM, 8 that of QUIT")
		})
	}
}
