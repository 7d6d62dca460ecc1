// Package stopsignal tells which signal a container is stopped with (KEP-4960): the one
// that its pod asks for, else the one of its image, else SIGTERM.
//
//	package main
//
//	import (
//		"fmt"
//
//		v1 "k8s.io/api/core/v1"
//
//		"github.com/kubegrace/kubegrace/lifecycle/stopsignal"
//	)
//
//	func main() {
//		quit := v1.SIGQUIT
//		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{
//			{Name: "web", Lifecycle: &v1.Lifecycle{StopSignal: &quit}},
//		}}}
//		fmt.Println(stopsignal.Of(pod, "web", "")) // SIGQUIT
//	}
//
// A container runtime is told the signal when it creates the container, and sends it in
// StopContainer; nothing is signalled here. An agent whose runtime knows no stop signals,
// as one that runs plain processes, asks [Of] and sends the signal itself. [Count] is for
// the metric kubelet_pod_stop_signals_count.
//
// The package stands apart from package lifecycle because Kubernetes before v1.33 lacks
// the types: whoever builds with older libraries, as kubelet forks do, leaves it out and
// has all the rest.
//
// # The feature gate
//
// An agent in which the gate ContainerStopSignals is off asks [OfImage] instead of [Of],
// and does not count: what a pod asks for is then without effect.
//
// # Concurrency properties
//
// All functions are pure and may be called concurrently. Pods are read and never changed.
//
// # Failure modes
//
// There are none: a pod that is nil, and a container that its pod does not have, ask for
// nothing. Names are not checked; package validation does that.
//
// # Testing
//
// Nothing is needed but a pod.
package stopsignal
