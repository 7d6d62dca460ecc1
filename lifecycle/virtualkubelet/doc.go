// Package virtualkubelet makes a provider for virtual-kubelet out of four methods. The author runs the
// containers, or whole pods at another place; this package starts and terminates pods as the kubelet
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
//	// machine plays its containers: Running, StopContainer and ExitCode are those of lifecycletest.
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
// whole node. This package is a module of its own.
//
// # What you write
//
// A [Runtime] starts, lists and stops containers, and knows their exit codes. A [PodRuntime] creates,
// lists, stops and deletes pods that run as a whole. What runs is what they list: a pod has ended when
// a list says so, and never because a call was answered.
//
// # What you do not write
//
// Grace periods, which only get shorter (k/k#83916); hooks; the order of init containers and sidecars;
// repeated and forced stops; starts that race a deletion (k/k#125050); restarts with the kubelet's
// back-off; statuses; and the drain of the node: a Provider is a [shutdown.PodKiller],
// [Provider.Pods] lists its pods, and [Options.Admit] refuses new ones. There are no probes, no restarts
// of sidecars during a termination (KEP-4438), and no restart rules (KEP-5307).
//
// # When something fails
//
//	what fails                      what happens                        what to do
//	a list, or a pod without a UID  logged once until it changes;       answer; an error never means
//	                                  nothing has ended                   that nothing runs
//	a list lacks what was running   one more list is asked for, then    list a container until its
//	  and has no exit code            it is lost: logged, exit code 137   exit code is known
//	StartContainer, Create          the list is asked; what does not    make Create idempotent by UID
//	                                  run is started again, by policy
//	StopContainer, Stop             called again, at last with 0        nothing
//	StopContainer, for minutes      the pod stays Running; DeletePod    nothing: virtual-kubelet
//	                                  is an error and tries again         calls again
//	your code panics                an error of that call, logged       nothing
//	the agent is restarted          containers run on                   Adopt, before the node runs;
//	                                                                      a PodRuntime needs nothing
//	go mod tidy in a new module     k8s.io/api is too new for           go get k8s.io/api@v0.33.13, the
//	                                  client-go                           version of client-go, first
//
// # Concurrency
//
// All methods may be called concurrently. CreatePod, UpdatePod and DeletePod return at once. Close waits
// for all goroutines, and leaves the pods running. No mutex is held while your code runs.
//
// # Stability
//
// Experimental: what is exported may change in a patch release, and the changelog says how. It follows
// the interfaces of virtual-kubelet.
package virtualkubelet
