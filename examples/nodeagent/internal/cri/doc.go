// Package cri runs the pods of the agent in a real container runtime, over the
// Container Runtime Interface (CRI, runtime.v1):
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
// It is a small part of what a kubelet does. A pod is a sandbox in the network of
// the host and its containers, labelled as the kubelet labels them, so that
// crictl shows them. Images are never pulled: they have to be there. Command,
// arguments, environment (values only, without the expansion of $(NAME)), working
// directory and stop signal are passed on; a container that asks for something
// that would be missing inside (volumes, envFrom, valueFrom, a security context)
// is refused. Resource limits and probes are not acted on, and a container that
// has exited is not started again.
//
// # Concurrency properties
//
// All methods of a [Runtime] may be called concurrently, except [Runtime.StartPod]
// and [Runtime.StopPod] for one and the same pod. A Runtime owns two goroutines,
// one that reads the runtime's container events and one that polls while somebody
// waits for an exit; both have ended when [Runtime.Close] returns.
//
// # Failure modes
//
// A runtime that cannot be reached fails [New] with the endpoint in the error. One
// that is restarted later is reconnected to, within three seconds of its return.
// A StartPod that fails removes what it made. A container that the runtime does
// not know is reported as lifecycle.ErrContainerNotFound, an exec that was ended
// by its time as context.DeadlineExceeded. The stream of events is taken when the
// runtime has one; when it has none, as containerd 1.6, or loses it, ListContainers
// is asked every 100 ms. A runtime that ignores a container's stop signal, as
// containerd 1.6 does, is reported in the log.
//
// # Testing
//
// The tests run against a scripted CRI server on a unix socket, and against a real
// containerd where its programs are installed (package containerdtest).
package cri
