// Package virtualkubelet builds a provider for virtual-kubelet from four methods. The author runs the
// containers, or whole pods in another system; this package starts and terminates pods as the kubelet
// does.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//		"time"
//
//		v1 "k8s.io/api/core/v1"
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//
//		"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
//		"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
//	)
//
//	// machine simulates its containers: lifecycletest has Running, StopContainer and ExitCode.
//	type machine struct{ *lifecycletest.Runtime }
//
//	func (m machine) StartContainer(_ context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
//		id := pod.Name + "/" + c.Name
//		m.Start(pod, c.Name, id, lifecycletest.Script{ExitAfterTerm: time.Second})
//		return id, nil
//	}
//
//	func main() {
//		ctx := context.Background()
//		provider, err := virtualkubelet.New(virtualkubelet.Options{Runtime: machine{lifecycletest.NewRuntime()}})
//		if err != nil {
//			log.Fatal(err)
//		}
//		phases := make(chan v1.PodPhase)
//		provider.NotifyPods(ctx, func(pod *v1.Pod) { phases <- pod.Status.Phase })
//		pod := &v1.Pod{
//			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"},
//			Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "nginx"}}},
//		}
//		if err := provider.CreatePod(ctx, pod); err != nil { // virtual-kubelet calls this
//			log.Fatal(err)
//		}
//		for phase := range phases {
//			fmt.Println(phase) // Pending, Running, Succeeded
//			switch phase {
//			case v1.PodRunning:
//				err = provider.DeletePod(ctx, pod) // and this
//			case v1.PodSucceeded:
//				if err = provider.Close(ctx); err == nil {
//					return
//				}
//			}
//			if err != nil {
//				log.Fatal(err)
//			}
//		}
//	}
//
// virtual-kubelet takes the provider as node.PodControllerConfig.Provider. examples/virtualkubelet is a
// whole node. This package is its own module.
//
// # What you implement
//
// A [Runtime] starts, lists and stops containers, and knows their exit codes. A [PodRuntime] creates,
// lists, stops and deletes whole pods. Their lists decide what is running: a container or pod has ended
// when a list says so, never because a call has returned.
//
// # What the package does
//
// Grace periods, which only get shorter (k/k#83916), hooks, the order of init containers and sidecars,
// repeated and forced stops, starts that race a deletion (k/k#125050), restarts with the kubelet's
// back-off, and statuses.
//
// For the node's drain, a Provider is a [shutdown.PodKiller], [Provider.Pods] lists its pods, and
// [Options.Admit] refuses new ones. Give the manager an apistatus.Reporter too: it makes the drain wait for
// the API server to accept the final statuses, which virtual-kubelet sends without waiting.
//
// It has no probes, no restarts of sidecars during a termination (KEP-4438), and no restart rules
// (KEP-5307).
//
// # Failures
//
//	what fails                      what happens                        what to do
//	a list, or a pod without a UID  logged when the error changes;      return an error, never a
//	                                  nothing counts as ended             partial list
//	a running container is missing  listed once more, then logged and   list a container until its
//	  and has no exit code            ended with exit code 137            exit code is known
//	StartContainer, Create          listed; what is not running is      make Create idempotent by UID
//	                                  started again, by restart policy
//	StopContainer, Stop             called again, at last with 0 s      nothing
//	StopContainer, for minutes      the pod stays Running, DeletePod    nothing: it is repeated
//	                                  returns an error                    after 10 s
//	your code panics                logged; the call fails              nothing
//	the agent restarts              containers keep running             Adopt before the node runs;
//	                                                                      a PodRuntime needs nothing
//	Adopt is not called             containers start twice              call it
//	go mod tidy in a new module     k8s.io/api is newer than client-go  go get this package before
//
// # Concurrency
//
// Methods may run concurrently. CreatePod, UpdatePod and DeletePod return at once. Close waits
// for all goroutines and leaves the pods running. Your code is never called with a mutex held.
//
// # Stability
//
// Experimental: any release may change exported names; the changelog says how. It
// follows virtual-kubelet's interfaces.
package virtualkubelet
