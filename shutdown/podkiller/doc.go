// Package podkiller makes an agent's [lifecycle.Terminator] the [shutdown.PodKiller] of its node shutdowns
// and evictions. Packages lifecycle and shutdown do not import each other; this package imports both.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//
//		v1 "k8s.io/api/core/v1"
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//
//		"github.com/kubegrace/kubegrace/lifecycle"
//		"github.com/kubegrace/kubegrace/shutdown"
//		"github.com/kubegrace/kubegrace/shutdown/podkiller"
//	)
//
//	// runtime is the container runtime of the agent, with one container.
//	type runtime struct{ hasEnded bool }
//
//	func (r *runtime) Running(_ context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
//		if r.hasEnded {
//			return nil, nil
//		}
//		return []lifecycle.Container{{Name: "nginx", ID: pod.Name + "/nginx"}}, nil
//	}
//
//	func (r *runtime) StopContainer(_ context.Context, id string, timeoutSeconds int64) error {
//		fmt.Printf("stop container %s within %d s\n", id, timeoutSeconds)
//		r.hasEnded = true
//		return nil
//	}
//
//	// pods returns the pods that run on this node.
//	func pods() []*v1.Pod {
//		return []*v1.Pod{{
//			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
//			Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "nginx"}}},
//		}}
//	}
//
//	func main() {
//		ctx := context.Background()
//		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: &runtime{}})
//		if err != nil {
//			log.Fatal(err)
//		}
//		killer := podkiller.New(terminator, podkiller.Options{})
//		manager, err := shutdown.NewManager(shutdown.Options{ListPods: shutdown.ListPodsFunc(pods, nil), Killer: killer})
//		if err != nil {
//			log.Fatal(err)
//		}
//		report, err := manager.TerminateAll(ctx) // stop container web/nginx within 30 s
//		if err != nil {
//			log.Fatal(err)
//		}
//		fmt.Println(report.Pods[0].Name, report.Pods[0].Outcome) // web Graceful
//	}
//
// If the runtime cannot list containers, set [Options.Containers]. If you report final statuses of pods, set
// [Options.Status].
//
// # Evictions
//
// Use the same killer for evictions. [TimedKiller] waits no longer than the kubelet does:
//
//	evictions := podkiller.Timed(killer, recorder)
//	defer evictions.Wait()
//	if podkiller.Evictable(pod) {
//		_, err = evictions.KillPod(ctx, pod, podkiller.SoftEviction(pod, 30, "The node was low on resource: memory."))
//	}
//
// # Failures
//
//	what fails                       what happens                           what to do
//	a container cannot be stopped    KillPod returns an error and no final  call KillPod again, as the
//	                                   status, because the pod may run        manager does
//	a kill exceeds its timeout       TimedKiller.KillPod returns an         call OverdueError.Await
//	                                   *OverdueError; the kill continues
//	a function of Options hangs      KillPod waits for it                   return when ctx ends
//	a function of Options panics     the stack is logged, KillPod returns   fix the function
//	                                   an error
//	the runtime cannot list, and     KillPod returns an error               set it
//	  Options.Containers is nil
//	the terminator is closed         the error wraps shutdown.ErrNoRetry    nothing
//
// # Concurrency
//
// All functions and methods may be called concurrently. A pod that is killed by a shutdown and an eviction has
// one termination, whose deadline only moves earlier. [TimedKiller.KillPod] starts a goroutine for each kill;
// [TimedKiller.Wait] waits for them.
//
// # Testing
//
// Package lifecycletest has a runtime for the terminator. It works in testing/synctest bubbles.
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package podkiller
