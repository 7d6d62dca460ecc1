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

// The stop signal of a container is that of its status while it runs, else of its spec, else of its image, else SIGTERM. Of
// does not change the pod.
func TestOf(t *testing.T) {
	pod := &v1.Pod{
		Spec: v1.PodSpec{
			Containers: []v1.Container{
				containerWithSignal("in-spec", v1.SIGUSR1), containerWithSignal("in-both", v1.SIGUSR1), containerWithSignal("ended", v1.SIGUSR2),
				{Name: "in-none", Lifecycle: &v1.Lifecycle{}},
			},
			InitContainers: []v1.Container{containerWithSignal("sidecar", v1.SIGINT)},
		},
		Status: v1.PodStatus{
			ContainerStatuses: []v1.ContainerStatus{
				runningStatus("in-spec", ""), runningStatus("in-both", v1.SIGKILL),
				{Name: "ended", StopSignal: ptr.To(v1.SIGHUP), State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}},
			},
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
		"status before spec":           {pod: pod, container: "in-both", image: "SIGQUIT", want: v1.SIGKILL},
		"status without a signal":      {pod: pod, container: "in-spec", image: "SIGQUIT", want: v1.SIGUSR1},
		"status of an ended container": {pod: pod, container: "ended", image: "SIGQUIT", want: v1.SIGUSR2},
		"sidecar that has not started": {pod: pod, container: "sidecar", image: "", want: v1.SIGINT},
		"init container":               {pod: pod, container: "init", image: "", want: v1.SIGALRM},
		"ephemeral container":          {pod: pod, container: "debug", image: "", want: v1.SIGQUIT},
		"image":                        {pod: pod, container: "in-none", image: "QUIT", want: v1.SIGQUIT},
		"default":                      {pod: pod, container: "in-none", image: "", want: v1.SIGTERM},
		"unknown container":            {pod: pod, container: "gone", image: "", want: v1.SIGTERM},
		"no name":                      {pod: pod, container: "", image: "", want: v1.SIGTERM},
		"nil pod":                      {pod: nil, container: "web", image: "SIGQUIT", want: v1.SIGQUIT},
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
