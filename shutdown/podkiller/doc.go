// Package podkiller makes an agent's [lifecycle.Terminator] the [shutdown.PodKiller] of
// its node shutdowns and of its evictions:
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
// Packages lifecycle and shutdown do not import each other; this package imports both.
//
// The runtime says what runs. An agent whose runtime cannot list gives [Options.Containers]. One
// that writes the final statuses of its pods gives [Options.Status].
//
// # Evictions
//
// An eviction is killed by the same killer, and waited for no longer than by the kubelet:
//
//	evictions := podkiller.Timed(killer, recorder)
//	defer evictions.Wait()
//	if podkiller.Evictable(pod) {
//		_, err = evictions.KillPod(ctx, pod, podkiller.SoftEviction(pod, 30, "The node was low on resource: memory."))
//	}
//
// # Concurrency properties
//
// All functions and methods may be called concurrently. A pod that is killed by a
// shutdown and by an eviction has one termination, whose deadline only moves earlier.
// A killer of [New] starts no goroutine of its own. [TimedKiller.KillPod] starts one for
// each kill; [TimedKiller.Wait] waits for them.
//
// # Failure modes
//
// If a container could not be stopped, KillPod returns an error and no final status,
// because the pod may still run. If Options.Status is nil, the reporter of the shutdown
// learns no exit codes. KillPod waits for the functions of [Options] even when its
// context has ended, so they must return when their ctx ends.
//
// # Testing
//
// Package lifecycletest has a runtime for the terminator. It works in testing/synctest
// bubbles, and so does this package.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package podkiller
