package stopsignal_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/stopsignal"
)

// The program of the package documentation.
func Example() {
	quit := v1.SIGQUIT
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{
		{Name: "web", Lifecycle: &v1.Lifecycle{StopSignal: &quit}},
	}}}
	fmt.Println(stopsignal.Of(pod, "web", ""))
	// Output: SIGQUIT
}

// The stop signal is that of the pod's spec, else of the image, else SIGTERM.
func ExampleOf() {
	quit := v1.SIGQUIT
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{
		{Name: "web", Lifecycle: &v1.Lifecycle{StopSignal: &quit}},
		{Name: "log"},
	}}}
	fmt.Println(stopsignal.Of(pod, "web", "SIGUSR1"))
	fmt.Println(stopsignal.Of(pod, "log", "SIGUSR1"))
	fmt.Println(stopsignal.Of(pod, "log", ""))
	// Output:
	// SIGQUIT
	// SIGUSR1
	// SIGTERM
}

// An image may name its signal in lower case and without SIG.
func ExampleOfImage() {
	fmt.Println(stopsignal.OfImage("quit"))
	// Output: SIGQUIT
}

// The counts of all pods of a node are the values of the metric. The runtime has reported a signal for one
// container; the others count as SIGTERM.
func ExampleCount() {
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	quit := v1.SIGQUIT
	web := &v1.Pod{Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{
		{Name: "web", State: running, StopSignal: &quit}, // reported by the runtime
		{Name: "log", State: running},
	}}}
	batch := &v1.Pod{Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "job", State: running}}}}
	fmt.Println(stopsignal.Count(web, batch)) // for metrics.Lifecycle.StopSignals
	// Output: map[SIGQUIT:1 SIGTERM:2]
}
