// Package stopsignal returns the signal with which a container is stopped (KEP-4960): that
// of its pod's spec, else that of its image, else SIGTERM.
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
// The package sends no signals. An agent passes the result of [Of] to the container runtime
// when it creates a container, and the runtime sends the signal in StopContainer. An agent
// without such a runtime, which for instance runs plain processes, sends the signal itself.
// [Count] is for the metric kubelet_pod_stop_signals_count.
//
// The package is separate from package lifecycle because Kubernetes before v1.33 does not
// have the types that it uses. A kubelet fork with older libraries can use package lifecycle
// without it.
//
// # The feature gate
//
// If the feature ContainerStopSignals is off, call [OfImage] instead of [Of], and do not
// call [Count]: the signal in a pod's spec has no effect then.
//
// # Concurrency properties
//
// All functions are pure and may be called concurrently. Pods are not changed.
//
// # Failure modes
//
// There are none: for a nil pod, and for a container that the pod does not have, the result
// is that for the image alone. The names of signals are not checked; package validation does
// that.
//
// # Testing
//
// A test needs only a pod.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package stopsignal
