// Package lifecycle terminates pods in a node agent as the kubelet does: it computes the
// grace period, records the Killing event, runs the preStop hooks, stops sidecars after the
// main containers, and calls StopContainer. A pod has one deadline, which only moves
// earlier.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//
//		v1 "k8s.io/api/core/v1"
//
//		"github.com/kubegrace/kubegrace/lifecycle"
//	)
//
//	// stopContainer calls the container runtime of the agent.
//	func stopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
//		fmt.Printf("stop container %s within %d s\n", id, timeoutSeconds)
//		return nil // the container has ended
//	}
//
//	func main() {
//		ctx := context.Background()
//		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
//			Runtime: lifecycle.RuntimeFunc(stopContainer),
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		grace := int64(30)
//		pod := &v1.Pod{Spec: v1.PodSpec{
//			TerminationGracePeriodSeconds: &grace,
//			Containers: []v1.Container{{Name: "web", Lifecycle: &v1.Lifecycle{
//				PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 1}},
//			}}},
//		}}
//		result, err := terminator.KillPod(ctx, pod, lifecycle.Request{
//			Containers: []lifecycle.Container{{Name: "web", ID: "3f4e"}},
//		}) // stop container 3f4e within 29 s
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
// [Terminator.Pod] gives the life of a pod, for agents that start their pods themselves:
// [Pod.Start] starts containers, [Pod.PostStart] runs their postStart hooks,
// [Pod.KillContainer] stops a single container, for instance after a failed probe, and
// [Pod.Terminate] starts the same termination as KillPod and returns at once, with a
// [Termination] that can be watched and shortened. [NewHandlerRunner] makes a runner for
// hooks alone.
//
// # Lives, slots and attempts
//
// The life of a pod begins with its first Start or kill and ends with [Pod.Forget]. It has a
// slot for each container name, and a slot has attempts: one for each run of the container,
// with its ID, its deadline, whether its preStop hook has run, and whether it has ended. All
// methods use the same attempts. Therefore a termination takes over the kill of a single
// container, a second call joins the first, a deadline only moves earlier, and no hook runs
// twice for one start.
//
// An ID that is named belongs to the attempt that has it, under whatever name. Any other is a new
// attempt. If a Start that was under way then returns that ID, the two are one: a hook that has run
// does not run again, and the container is asked to stop after the Start has returned. IDs may be
// used again: if a container that has exited, as the [ExitWatcher] says, is named as one that runs,
// or a Start returns its ID, the watcher is asked anew.
//
// A container counts as ended only if that is known: the runtime and the [ExitWatcher], if it
// knows the container, both say so. If the watcher still says that it runs ExitSlack after
// StopContainer has returned, the runtime is asked again; a container that is named again after
// its end is asked about again too. If the pod's status has no state for a container, its
// outcome is [RuntimeStuck], and the error wraps [ErrUnknownContainers]. A Start that does not
// say whether it has started its container leaves one that is RuntimeStuck until something
// proves its end.
//
// A pod whose containers stop only together, such as a virtual machine or a remote job, has a
// [PodStopper].
//
// # How a container is stopped
//
// The steps are those of the kubelet's killContainer:
//
//  1. The grace period is computed, and the Killing event is recorded.
//  2. The preStop hook runs, if there is time. The hooks of all containers run
//     concurrently, those of sidecars included, unless [HooksAtTurn] is set.
//  3. The container waits for its turn: a sidecar stops after the main containers, and
//     after the sidecars that are declared later.
//  4. StopContainer is called. Its timeout is what the hook and the wait have left of the
//     grace period, in whole seconds, and at least 2 s.
//
// A StopContainer that fails is called again, first after 100 ms, later after up to a
// second, with what is then left of the grace period. That is 0 from a second after the
// deadline. If a call has not returned StopSlack after its timeout, a second, concurrent call
// with timeout 0 is made. The first failure of a container is logged, and is a FailedKillPod
// event unless another container of the pod is failing already. The calls are repeated until
// GiveUp after the deadline, or after the first call if that came after the deadline.
//
// # Outcomes
//
// The outcome of a container:
//
//	the container ended within the timeout         Graceful
//	StopContainer took as long as its timeout      GraceExceeded (1)
//	the runtime does not have the container        NotFound
//	it had exited, as only Start and the           NotFound
//	  ExitWatcher could tell
//	a StopContainer with timeout 0 succeeded       Forced
//	none had succeeded GiveUp after the deadline   RuntimeStuck (2)
//	its Start had not returned at the deadline     RuntimeStuck (2, 3)
//	its Start panicked, or gave neither the ID     RuntimeStuck (4)
//	  nor ErrContainerNotFound
//	its Start gave ErrContainerNotFound            NotFound
//	StopContainer has returned, and the            RuntimeStuck (2)
//	  ExitWatcher says GiveUp after the deadline
//	  that it runs
//	its ID or its state is not known               RuntimeStuck
//	the terminator was closed                      LeftRunning
//
// The outcome of its preStop hook, and the cause:
//
//	it returned no error                           Completed, also if it was just cut
//	it returned an error, or panicked              Failed, with a FailedPreStopHook event
//	the grace period was over                      Cut, GraceSpent
//	the grace period was shortened and over        Cut, Shortened
//	its container exited during a sleep            Cut, ContainerExited
//	the terminator was closed                      Cut, AgentStopping
//	it did not return within 1 s after it was cut  Abandoned, with the cause
//	no time was left, it had run before, or        Skipped
//	  it is a sleep and the feature is off
//	the container has no hook                      ""
//
// (1) A runtime says that it has killed with [ErrKilled]. Without that it is concluded: it kills
// when the timeout is over, so a stop that took that long counts as a kill. That is wrong for a
// container that ended at that very moment, and for a runtime that was slow to return.
//
// (2) [Pod.Kill] and [Pod.KillContainer] stop it again, under the old deadline, unless the call
// made one attempt that was not delivered ([Request.OneAttempt]).
//
// (3) If the start succeeds later, [Pod.Start] stops the container before it returns.
//
// (4) The container may have been started. Only a Complete request that lacks it, a status or
// [Pod.Forget] ends that.
//
// # Concurrency properties
//
// All methods may be called concurrently, by any number of callers for the same pod, which
// has one termination. The termination goes on when a caller's context ends: the context
// only gives values, and limits how long that caller waits.
//
// A container that is being stopped has one goroutine. Each call of the embedder's code has
// another one, except a sleep of [NewHandlerRunner]. [Terminator.Close] waits for all of
// them. The function that is passed to [Pod.Start] runs in its caller's goroutine.
//
// Each pod has a mutex, and so has the list of pods. They are not held while the embedder's
// code is called, or while anything blocks.
//
// # Failure modes
//
// A hook that hangs is cancelled at the deadline, and the container is stopped without
// waiting for it. If the hook ignores its cancellation, it is abandoned and counted, and
// named in the error of Close. An event recorder that hangs uses up no grace period: the
// events of a container are recorded in another goroutine, one after the other, and waited
// for at the end, for at most a second. The answer of an [ExitWatcher] is waited for beside
// the hook and the stop. Where something depends on it before, that waits for at most 100 ms.
// One that has not answered ExitSlack after StopContainer has returned is not believed more than
// the runtime.
//
// A runtime that fails or hangs uses up no grace period of a container. A container that
// waits for another one which cannot be stopped is itself stopped at the deadline. A container
// is given up at the latest GiveUp after its deadline, or after its first StopContainer if that
// came later; then at most a second is spent on a hook that was cut, and another one on events.
// The termination ends with its last container, and can be repeated.
//
// If code of the embedder panics, that is logged with the stack. A panic, or the end of its
// goroutine, becomes an error of the container: a hook has failed, a StopContainer is repeated,
// and for a start it is not known whether it has started the container.
//
// An agent that stops leaves its containers running, with the outcome [LeftRunning]. After
// its restart it goes on with [graceperiod.LeftOfDeletion] and [Container.PreStopDone].
//
// # Testing
//
// Package lifecycletest has a runtime whose containers follow a script, and which records
// the calls. Both packages work in testing/synctest bubbles, where a grace period of an hour
// takes no time and all times are exact.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package lifecycle
