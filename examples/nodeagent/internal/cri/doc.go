// Package cri starts the pods of the agent in a real container runtime, over the Container
// Runtime Interface (CRI, runtime.v1). What stops them, runs their hooks and tells their exits is
// package criruntime:
//
//	runtime, err := cri.New(ctx, "unix:///run/containerd/containerd.sock", cri.Options{})
//	if err != nil {
//		return err
//	}
//	defer runtime.Close()
//	containers, err := runtime.StartPod(ctx, pod)
//	if err != nil {
//		return err
//	}
//	exited := runtime.Exited(containers[0].ID)
//	if err := runtime.StopContainer(ctx, containers[0].ID, 30); err != nil {
//		return err
//	}
//	<-exited
//
// It does a small part of what a kubelet does. A pod is one sandbox in the network of the
// host, and its containers; both have the kubelet's labels, so that crictl shows them.
// Images are never pulled and must be in the runtime already. Command, arguments,
// environment (values only, $(NAME) is not expanded), working directory and stop signal
// are passed on. [ValidatePod] refuses a pod that needs more inside a container (volumes,
// envFrom, valueFrom, a security context). Resource limits and probes have no effect. A
// container that has exited is started again only by [Runtime.RestartContainer].
//
// # Concurrency properties
//
// All methods of a [Runtime] may be called concurrently, except [Runtime.StartPod] and
// [Runtime.StopPod] for the same pod. The Runtime of package criruntime owns the goroutines.
//
// # Failure modes
//
// [New] fails if the runtime cannot be reached; the error names the endpoint. A StartPod that
// fails removes what it created. If a runtime ignores the stop signal of a container, as
// containerd 1.6 does, that is logged. All else is as in package criruntime.
//
// # Testing
//
// The tests run against a scripted CRI server on a unix socket, and against a real
// containerd where its programs are installed (package containerdtest).
package cri
