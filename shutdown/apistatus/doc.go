// Package apistatus is the [shutdown.Reporter] of agents with an API server: it reports
// what a node shutdown does to the node and its pods.
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
// Node: while the node shuts down, its Ready condition is False with the kubelet's
// reason and message, and GracefulNodeShutdownInProgress (KEP-5683) is True, on which the
// DaemonSet controller of KEP-6249 creates no pods on the node. With the feature
// [shutdown.DaemonSetGracefulNodeShutdown] DrainInProgress is True as well, for others who
// watch drains. All are written in one request before the first pod is killed, and
// undone when the shutdown is cancelled and after the next boot. A drain of somebody
// else is left as it is: its reason is not NodeShutdown. An agent whose own loop
// writes the node's conditions must take them from [NodeConditions]; otherwise its next
// heartbeat sets Ready to True again.
//
// Pods: [Reporter.FlushPod] writes the final status of a pod in one patch, as the
// kubelet's status manager does (KEP-3329: the phase together with DisruptionTarget),
// and then deletes a pod that has a deletion timestamp. It makes the patch from the pod
// that it is given, without reading it first; the pod's UID is the precondition. Fields
// of other writers (addresses, readiness gates, PodScheduled) stay; phase, reason,
// message and container statuses are the node's. A container that has ended with an
// unknown exit code is written as by the kubelet: terminated, 137,
// ContainerStatusUnknown. The status of a static pod goes to its mirror pod, which is
// read first because only its annotations tell which static pod it mirrors.
//
// Services: [Reporter.MarkNotReady] makes a pod not ready before it is stopped. This is
// needed because a pod that its node kills has no deletion timestamp, so EndpointSlices
// would keep it (k/k#105780). [Reporter.RestoreReadiness] undoes it. Agents that write
// EndpointSlices themselves use [EndpointConditions].
//
// The reporter reads nodes and pods, patches nodes/status and pods/status, and deletes
// pods. The API server allows all of that to a kubelet for its own node.
//
// # Concurrency properties
//
// All methods of a [Reporter] may be called concurrently. They start no goroutines and
// return when their context ends. They do not modify the pods that they are given.
//
// # Failure modes
//
// A method for a pod makes one attempt, and [Options.RequestTimeout] bounds each request
// of it. client-go's own retries of Retry-After answers are turned off, so that the
// caller learns at once that the server limits requests and decides when to try again.
// The error has the server's answer (see SuggestsClientDelay, IsForbidden and others in
// k8s.io/apimachinery/pkg/api/errors). No such error is final: an API server that is
// starting answers 403 to everybody.
//
// A pod that is gone counts as acknowledged, also if another pod has its name by now.
// The API server then answers 404, 422 naming metadata.uid, or 409, after which the pod
// is read. If an answer was lost, the call may be repeated: it writes the same again.
//
// [Reporter.PublishNode] decides by the node that it reads and uses its version as a
// precondition. It tries again by itself, after 20 to 750 ms or as long as the server
// asks for, until its context ends or the API server refuses (400, 401, 403, 422). The
// timeout of its first attempt is 1 s, but at most a quarter of the remaining time, and
// it doubles with each attempt. An attempt that hangs therefore does not use up all the
// time.
//
// # Testing
//
// Use the fake clientset of client-go, also in testing/synctest bubbles. It ignores the
// preconditions: UIDs and versions.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package apistatus
