// Package criruntime stops the containers of a node through its container runtime (CRI, runtime.v1), each
// with its own grace period and preStop hook. It needs neither a running kubelet nor an API server.
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
// Stop the kubelet first: it restarts what has been stopped.
//
// # What a kubelet stores in its runtime
//
// [Runtime.Pods] reads the labels and annotations of kubelets: names, UID, grace period and that of a
// deletion, preStop hook, ports, restart count. They are not part of the Kubernetes API, but kubelets from
// v1.32 to v1.37 write the same ones; a test checks each version.
//
// A kubelet stores neither priorities, sidecars, restartPolicy, probes nor stop signals. Without them a
// critical pod is in the first bucket, and a sidecar is stopped together with the main containers. A
// program that knows them, from an informer or a rule, adds them to the pods before the manager gets them.
//
// [Runtime.StopPodSandbox] releases the network of a pod that has ended.
//
// # Failures
//
//	what fails                       what happens                          what to do
//	the runtime is down              calls fail, reconnects within 4 s;    nothing
//	                                   a list is never incomplete
//	an unknown container             lifecycle.ErrContainerNotFound        nothing
//	a call or command times out      context.DeadlineExceeded              call again
//	the runtime hides a network      the pod is listed without an IP       nothing
//	a list is larger than 16 MiB     an error, as in the kubelet           use a runtime that streams
//	                                                                         lists (KEP-5825)
//	containerd 2 is down at an exit  exit code 255                         nothing
//
// # Concurrency
//
// All methods may be called concurrently. A Runtime owns one goroutine, which polls while exits are
// watched and has ended when [Runtime.Close] returns.
//
// # Testing
//
// The tests use a scripted CRI server, and real containerds 1.6, 2.3 and 2.4 where they are installed
// (package containerdtest).
//
// # Stability
//
// Experimental: any release may change exported names; the changelog says how.
package criruntime
