// Package criruntime ends the containers of a node through its container runtime, over the Container
// Runtime Interface (CRI, runtime.v1), each with its own grace period and preStop hook, with the kubelet
// stopped and without an API server:
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//
//		"github.com/kubegrace/kubegrace/lifecycle"
//		"github.com/kubegrace/kubegrace/lifecycle/criruntime"
//		"github.com/kubegrace/kubegrace/shutdown"
//		"github.com/kubegrace/kubegrace/shutdown/podkiller"
//	)
//
//	func main() {
//		ctx := context.Background()
//		runtime, err := criruntime.Dial(ctx, "unix:///run/containerd/containerd.sock", criruntime.Options{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer runtime.Close()
//		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
//			Runtime: runtime, Commands: runtime, Exits: runtime,
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		manager, err := shutdown.NewManager(shutdown.Options{
//			Pods:   runtime.Pods,
//			Killer: podkiller.New(terminator, podkiller.Options{Status: runtime.PodStatus}),
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		report, err := manager.TerminateAll(ctx) // or Run, with a Source
//		if err != nil {
//			log.Fatal(err)
//		}
//		for _, pod := range report.Pods {
//			fmt.Println(pod.Namespace, pod.Name, pod.Outcome)
//		}
//	}
//
// A kubelet that is not stopped first starts again what has been stopped.
//
// # What a kubelet leaves at its runtime
//
// [Runtime.Pods] reads labels and annotations that kubelets write on sandboxes and
// containers: names, UID, grace period, that of a deletion, the preStop hook, ports, the restart
// count. They are no API of Kubernetes. Kubelets from v1.32 to v1.37 write the same, and a
// test has the names of each. A kubelet leaves neither a pod's priority nor which of its containers are
// sidecars, nor restartPolicy, probes and stop signals. Without them a critical pod is in the first bucket, and a
// sidecar is stopped with the main containers. [Options.Complete] adds what an informer, the kubelet's
// pods endpoint, its manifests or a rule knows.
//
// # What an agent that starts containers needs
//
// [Runtime.StartContainer] returns the ID of a container that was created although its start has failed:
// in [lifecycle.Pod.Start] it lets that container be stopped with its grace, too.
// [Runtime.ContainerStatus] reads one container, [Runtime.StopPodSandbox] releases the network of a pod that
// has ended, [Runtime.Version] tells whether the endpoint is right, and [Runtime.Conn] is for the rest of CRI:
// sandboxes, images.
//
// # Concurrency properties
//
// All methods of a [Runtime] may be called concurrently. A Runtime owns two goroutines: one reads the
// events of the runtime, the other polls while somebody waits for an exit. Both have
// ended when [Runtime.Close] returns.
//
// # Failure modes
//
// A runtime that is away or is restarted makes calls fail; the connection is back within three seconds of
// the runtime. Pods then fails and never returns a list that is too short. The error about a container
// that the runtime does not know wraps [lifecycle.ErrContainerNotFound]; one about a call or a command that ran
// out of time wraps context.DeadlineExceeded. If the runtime cannot tell the network of one pod, or how one
// container has ended, the pod is listed without it.
//
// Exits are taken from the runtime's stream of events, which is opened again when it has
// ended. Beside it containers are listed every second, because events can be lost; where the runtime has no
// events, as containerd 1.6, every 100 ms. A container that exits while containerd 2 is down may have the
// exit code 255. CRI does not say whether a runtime had to kill: the terminator judges by the time.
//
// # Testing
//
// The tests run against a scripted CRI server on a unix socket, and against real containerds 1.6, 2.2
// and 2.4 where their programs are installed (package containerdtest).
//
// # Stability
//
// Experimental: what is exported may change in a patch release, and the changelog says how.
// What kubelets write at a runtime is no API of Kubernetes.
package criruntime
