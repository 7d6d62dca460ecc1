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
//			ListPods: runtime.Pods,
//			Killer:   podkiller.New(terminator, podkiller.Options{Status: runtime.PodStatus}),
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
// Stop the kubelet first: it starts again what has been stopped.
//
// # What a kubelet leaves at its runtime
//
// [Runtime.Pods] reads the labels and annotations of kubelets: names, UID, grace period, that of a
// deletion, preStop hook, ports, restart count. They are no API of Kubernetes. Kubelets from v1.32 to
// v1.37 write the same, and a test has the names of each.
//
// A kubelet leaves neither priorities nor which containers are sidecars, nor restartPolicy, probes and
// stop signals. Without them a critical pod is in the first bucket, and a sidecar is stopped with the main
// containers. A program that knows them, from an informer or a rule, completes the pods between Pods
// and the manager.
//
// # What runs
//
// [Runtime.Running] lists the containers of one pod that have not ended. One that was created and not
// started is among them, and its stop removes it. A container that has none of the kubelet's labels is
// left alone in the sandbox of a kubelet's pod, as by the kubelet.
//
// # What an agent that starts containers needs
//
// [Runtime.StartContainer] is for [lifecycle.Terminator.Start]. It removes a container that could not be
// started. [Runtime.StopPodSandbox] releases the network of a pod that has ended, [Runtime.Version] tells
// whether the endpoint is right, and [Runtime.Conn] is for the rest of CRI.
//
// # Concurrency properties
//
// All methods of a [Runtime] may be called concurrently. A Runtime owns one goroutine, which polls while
// somebody waits for an exit. It has ended when [Runtime.Close] returns.
//
// # Failure modes
//
// Calls fail while the runtime is away; the connection is back within three seconds of the runtime. Pods
// and Running then fail and never return a list that is too short. The error about a container that the
// runtime does not know wraps [lifecycle.ErrContainerNotFound]; one about a call or a command that ran out
// of time wraps context.DeadlineExceeded. A pod whose network the runtime cannot tell is listed without it.
//
// A runtime that does not stream its lists (KEP-5825) can list 16 MiB at once, as to the kubelet. A
// container that exits while containerd 2 is down may have the exit code 255. CRI does not say whether a
// runtime had to kill: the terminator judges by the time.
//
// # Testing
//
// The tests run against a scripted CRI server, and against real containerds 1.6, 2.3 and 2.4 where they
// are installed (package containerdtest).
//
// # Stability
//
// Experimental: what is exported may change in a patch release, and the changelog says how.
package criruntime
