// Package lifecycle terminates pods in a node agent the way the kubelet does. It computes the grace period,
// records Killing events, runs preStop hooks, and calls StopContainer, on main containers before sidecars.
// A pod has one deadline, which only moves earlier.
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
//	)
//
//	// machine is the container runtime of the agent. It runs one container.
//	type machine struct{ running []lifecycle.Container }
//
//	func (m *machine) Running(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
//		return m.running, nil
//	}
//
//	func (m *machine) StopContainer(_ context.Context, id string, timeoutSeconds int64) error {
//		fmt.Printf("stop container %s within %d s\n", id, timeoutSeconds)
//		m.running = nil
//		return nil // the container has ended
//	}
//
//	func main() {
//		ctx := context.Background()
//		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
//			Runtime: &machine{running: []lifecycle.Container{{Name: "web", ID: "3f4e"}}},
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		grace := int64(30)
//		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1.PodSpec{
//			TerminationGracePeriodSeconds: &grace,
//			Containers: []v1.Container{{Name: "web", Lifecycle: &v1.Lifecycle{
//				PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 1}},
//			}}},
//		}}
//		result, err := terminator.KillPod(ctx, pod, lifecycle.Request{}) // stop container 3f4e within 29 s
//		if err != nil {
//			log.Fatal(err)
//		}
//		for _, c := range result.Containers {
//			fmt.Println(c.Name, c.Outcome, c.Hook.Outcome) // web Graceful Completed
//		}
//		if err := terminator.Close(ctx); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// # How a pod is terminated
//
// The agent's [Runtime] lists the running containers. A termination stops every listed container, and ends
// when a later list is empty. A kubelet fork, which knows what is running, sets [Request].Containers. A
// successful StopContainer then proves that the container has ended.
//
// Each container has its own goroutine:
//
//  1. Record the Killing event.
//  2. Run the preStop hook. All hooks run in parallel, unless [TerminatorOptions].HooksAtTurn is set.
//  3. A sidecar waits for main containers and for later sidecars, at most until the deadline.
//  4. Call StopContainer with the remaining grace period: at least 2 s until the deadline, then less.
//  5. List again. While the container is listed, repeat step 4 until GiveUpAfter past the deadline.
//
// A [PodStopper] is for pods that stop as a unit, such as virtual machines.
//
// # Failures
//
//	What fails                       What happens                          What to do
//	StopContainer fails, or returns  It is called again with the           Nothing.
//	  while the container is listed    remaining grace period.
//	StopContainer does not return    StopTimeoutSlack after its timeout    Nothing.
//	                                   it is called again, with timeout 0.
//	Running fails or does not        It is called again. An error never    Nothing.
//	  return                           means that nothing is running.
//	A container is still listed      RuntimeStuck with an error.           Call Terminate again. The
//	  GiveUpAfter past the deadline                                          old deadline applies.
//	A sidecar exits                  Nothing.                              Start it again while
//	                                                                         ShouldRestart is true.
//	A hook fails                     FailedPreStopHook event. The          Read HookResult.Err.
//	                                   container is stopped.
//	A hook does not return           Its context ends at the deadline.     End it with its context.
//	A start does not return          RuntimeStuck. Start stops the         End it with its context.
//	                                   container when it returns.
//	A callback panics                The stack is logged. The call fails.  Fix the callback.
//	The agent stops                  Close: LeftRunning.                   Pass LeftOfDeletion and
//	                                                                         PreStopDone next time.
//
// # Concurrency
//
// Methods may run concurrently. A caller's context provides values, such as a logger, and limits only the
// caller's wait, except in Start and PostStart. [Terminator.Close] ends all goroutines. No mutex is held
// during a callback.
//
// # Testing
//
// Package lifecycletest has a scripted runtime for testing/synctest.
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package lifecycle
