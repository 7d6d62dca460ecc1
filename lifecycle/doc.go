// Package lifecycle terminates pods in a node agent as the kubelet does. It computes the grace period,
// records the Killing events, runs the preStop hooks, and calls StopContainer, for sidecars after the
// main containers. Each pod has one deadline, which only moves earlier.
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
//	// machine is the container runtime of the agent. One container runs on it.
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
// # The runtime lists what runs
//
// Only the [Runtime] knows what runs. A termination requests a list, stops what is listed, and ends when
// a later list is empty. Whether StopContainer fails, returns too early or is called twice: the next list
// shows what still runs. A kubelet fork knows what runs, and passes [Request].Containers instead. A
// StopContainer that succeeds is then proof that the container has ended.
//
// # How a container is stopped
//
// One goroutine per container follows the kubelet's killContainer:
//
//  1. It records the Killing event.
//  2. It runs the preStop hook if there is time, in parallel with other containers. [TerminatorOptions].HooksAtTurn moves
//     this step after step 3.
//  3. A sidecar waits for the main containers, and for the sidecars that are declared after it.
//  4. It calls StopContainer with the rest of the grace period, in whole seconds, at least 2 s.
//  5. It requests a list. If the list has the container, it repeats steps 4 and 5 after 100 ms to 1 s,
//     until GiveUpAfter after the deadline.
//
// Until the deadline, a container that could not be stopped still blocks sidecars. A [PodStopper] is for
// pods that stop as a unit, such as virtual machines.
//
// # When something fails
//
//	what fails                              what happens
//	StopContainer fails                     it is called again with the rest of the grace period, if
//	                                          the next list still has the container
//	StopContainer returns, and the          it is called again in the same way
//	  container is still listed
//	StopContainer does not return           StopTimeoutSlack after its timeout it is called again, with
//	                                          timeout 0, if the next list still has the container
//	Running fails or does not return        it is called again; an error never means that nothing runs
//	the container is listed GiveUpAfter     RuntimeStuck with an error; the next Terminate tries again,
//	  after the deadline                      under the old deadline
//	a sidecar exits                         the agent starts it again with Start while ShouldRestart
//	                                          returns true
//	a hook fails                            FailedPreStopHook event; the container is stopped
//	a hook does not return                  its context ends at the deadline; the stop goes on
//	a start does not return                 RuntimeStuck; Start stops what it starts later
//	code of the embedder panics             a log line with the stack; the panic is that call's error
//	the event recorder does not return      no grace period is lost; the end comes up to 1 s later
//	the agent stops                         Close: LeftRunning; the next agent goes on with
//	                                          [graceperiod.LeftOfDeletion] and PreStopDone
//
// # Concurrency and tests
//
// A caller's context carries values and limits how long the caller waits; the termination goes on after
// its end. [Terminator.Close] ends every goroutine, and names the containers whose goroutines do not end.
// No mutex is held while the embedder's code runs. Package lifecycletest has a scripted runtime for
// testing/synctest bubbles, in which an hour passes at once.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package lifecycle
