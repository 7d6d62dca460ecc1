// Package apistatus is the [shutdown.Reporter] for agents with an API server. It writes the node's
// conditions during a shutdown and the final statuses of the node's pods.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//		"os"
//
//		v1 "k8s.io/api/core/v1"
//		"k8s.io/client-go/tools/clientcmd"
//
//		"github.com/kubegrace/kubegrace/shutdown"
//		"github.com/kubegrace/kubegrace/shutdown/apistatus"
//	)
//
//	// kill stops the containers of a pod and returns when they have ended.
//	func kill(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
//		fmt.Printf("kill %s within %d s\n", pod.Name, *req.GracePeriodSeconds)
//		return shutdown.KillResult{}, nil
//	}
//
//	func main() {
//		config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
//		if err != nil {
//			log.Fatal(err)
//		}
//		client, err := apistatus.NewClient(config) // with its own rate limit and connections
//		if err != nil {
//			log.Fatal(err)
//		}
//		reporter, err := apistatus.New(apistatus.Options{Client: client, NodeName: "node-1"})
//		if err != nil {
//			log.Fatal(err)
//		}
//		manager, err := shutdown.NewManager(shutdown.Options{
//			ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return nil }, nil), // those of the node, with their UIDs
//			Killer:   shutdown.PodKillerFunc(kill),
//			Reporter: reporter,
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		report, err := manager.TerminateAll(context.Background()) // Run drains when the host shuts down
//		fmt.Println(report, err)
//	}
//
// # Node
//
// During a shutdown [Reporter.PublishNode] sets Ready to False with the kubelet's reason and message,
// and GracefulNodeShutdownInProgress (KEP-5683) to True. The feature [shutdown.DaemonSetGracefulNodeShutdown]
// adds DrainInProgress: on a node with both, the DaemonSet controller of KEP-6249 creates no pods. One
// request writes all of them, before the first pod is killed if there is time. They are reset when the
// shutdown is cancelled and after the next boot.
//
// An agent whose own loop writes the node's conditions must take them from [NodeConditions]. Otherwise
// its next heartbeat sets Ready to True again.
//
// # Pods
//
// [Reporter.FlushPod] writes a pod's final status in one patch, as the kubelet's status manager does
// (KEP-3329), and deletes the pod if it has a deletion timestamp.
//
// [Reporter.MarkNotReady] removes a pod from its services before the pod is stopped. Without it,
// EndpointSlices keep a pod that its node kills, because such a pod has no deletion timestamp
// (k/k#105780). [Reporter.RestoreReadiness] undoes it.
//
// # Permissions
//
// The reporter reads nodes and pods, patches nodes/status and pods/status, and deletes pods. The API
// server allows a kubelet to do this for its own node.
//
// # Failures
//
//	what fails                    what happens                         what to do
//	a request for a pod           an error that wraps the server's     call again: no error is final, a
//	                                answer; nothing is retried           starting API server answers 403
//	the server limits requests    an error at once; client-go does     wait as SuggestsClientDelay says
//	                                not retry
//	no answer                     an error after RequestTimeout        call again: a repeated write is
//	                                                                     harmless
//	the pod is gone or replaced   nil                                  nothing
//	a request for the node        PublishNode retries until ctx ends   nothing
//	the server refuses the node   PublishNode returns the error        grant the permissions
//
// # Concurrency
//
// All methods may be called concurrently. They start no goroutines and do not modify pods.
//
// # Testing
//
// Use client-go's fake clientset, which works in testing/synctest bubbles. It ignores preconditions
// (UID and resourceVersion).
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package apistatus
