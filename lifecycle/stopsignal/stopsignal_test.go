package stopsignal_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle/stopsignal"
)

// containerWithSignal returns a container with a stop signal in its spec.
func containerWithSignal(name string, signal v1.Signal) v1.Container {
	return v1.Container{Name: name, Lifecycle: &v1.Lifecycle{StopSignal: &signal}}
}

// runningStatus returns the status of a running container with a stop signal, or without one if signal is "".
func runningStatus(name string, signal v1.Signal) v1.ContainerStatus {
	status := v1.ContainerStatus{Name: name, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
	if signal != "" {
		status.StopSignal = &signal
	}
	return status
}

// The status of a running container decides, then the spec, then the image, then SIGTERM.
func TestOf(t *testing.T) {
	ended := v1.ContainerStatus{Name: "ended", StopSignal: ptr.To(v1.SIGHUP), State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}}
	pod := &v1.Pod{
		Spec: v1.PodSpec{
			Containers:     []v1.Container{containerWithSignal("spec", v1.SIGUSR1), containerWithSignal("status", v1.SIGUSR1), containerWithSignal("ended", v1.SIGUSR2), {Name: "none", Lifecycle: &v1.Lifecycle{}}},
			InitContainers: []v1.Container{containerWithSignal("sidecar", v1.SIGINT)},
		},
		Status: v1.PodStatus{
			ContainerStatuses:          []v1.ContainerStatus{runningStatus("spec", ""), runningStatus("status", v1.SIGKILL), ended},
			InitContainerStatuses:      []v1.ContainerStatus{runningStatus("init", v1.SIGALRM)},
			EphemeralContainerStatuses: []v1.ContainerStatus{runningStatus("debug", v1.SIGQUIT)},
		},
	}
	before := pod.DeepCopy()
	for name, test := range map[string]struct {
		pod              *v1.Pod
		container, image string
		want             v1.Signal
	}{
		"status before spec":           {pod, "status", "SIGQUIT", v1.SIGKILL},
		"status without a signal":      {pod, "spec", "SIGQUIT", v1.SIGUSR1},
		"status of an ended container": {pod, "ended", "SIGQUIT", v1.SIGUSR2},
		"sidecar that has not started": {pod, "sidecar", "", v1.SIGINT},
		"init container":               {pod, "init", "", v1.SIGALRM},
		"ephemeral container":          {pod, "debug", "", v1.SIGQUIT},
		"image":                        {pod, "none", "QUIT", v1.SIGQUIT},
		"default":                      {pod, "none", "", v1.SIGTERM},
		"unknown container":            {pod, "gone", "", v1.SIGTERM},
		"no name":                      {pod, "", "", v1.SIGTERM},
		"nil pod":                      {nil, "web", "SIGQUIT", v1.SIGQUIT},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, stopsignal.Of(test.pod, test.container, test.image))
		})
	}
	require.Equal(t, before, pod)
}

// An image may write its stop signal in several ways; each becomes the name that Kubernetes uses.
func TestOfImage(t *testing.T) {
	for image, want := range map[string]v1.Signal{
		"SIGQUIT": v1.SIGQUIT,
		" quit\n": v1.SIGQUIT,
		"sigterm": v1.SIGTERM,
		"RTMIN+3": v1.SIGRTMINPLUS3,
		"9":       "9",
		"":        v1.SIGTERM,
		"  ":      v1.SIGTERM,
	} {
		require.Equal(t, want, stopsignal.OfImage(image), "%q", image)
	}
}
