// Package stopsignal returns the stop signal of a container (KEP-4960): the one that its status reports while it
// runs, else that of its pod's spec, else that of its image, else SIGTERM.
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
// The package does not send signals. An agent passes the result of [Of] to the runtime when it creates a
// container, and StopContainer sends it. An agent without such a runtime, for instance one that runs plain
// processes, sends the signal itself. [Count] is for the metric kubelet_pod_stop_signals_count.
//
// The package is separate from package lifecycle because it needs types that Kubernetes has only since v1.33.
//
// # Feature gate
//
// If the feature gate ContainerStopSignals is off, a pod's spec has no effect: call [OfImage] instead of [Of],
// and do not call [Count].
//
// # Failures
//
// None. For a nil pod or an unknown container the result is that of the image. Signal names are not checked;
// package validation does that.
//
// # Concurrency
//
// All functions are pure and may be called concurrently.
//
// # Testing
//
// A test needs only a pod.
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package stopsignal
