// Package lifecycle ends pods as the kubelet does, in any node agent: grace period,
// Killing event, preStop hooks, the order of sidecars and StopContainer, for a pod
// under one deadline that only ever moves earlier.
//
//	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
//		Runtime:  runtime, // StopContainer, as in the container runtime interface
//		Commands: runtime, // runs the commands of exec hooks
//		Exits:    runtime, // tells when a container has exited
//		Events:   recorder,
//	})
//	if err != nil {
//		return err
//	}
//	defer terminator.Close(context.WithoutCancel(ctx))
//
//	result, err := terminator.KillPod(ctx, pod, lifecycle.Request{})
//	for _, c := range result.Containers {
//		fmt.Println(c.Name, c.Outcome, c.Hook.Outcome)
//	}
//
// [Terminator.Terminate] begins the same and returns at once, with a [Termination]
// that can be watched and shortened. [Terminator.Start], [Terminator.PostStart] and
// [Terminator.KillContainer] are for the life before the end. [HandlerRunner] runs one
// hook by itself.
//
// # The table of a pod
//
// Of each pod the terminator keeps one table of its containers, by container ID, until
// [Terminator.Forget]: which were started, whether their preStop hook has run, and
// whether they have ended. All methods work on that table. A termination so takes over
// the kill of a single container that is under way, a second call of whatever kind joins
// the first, a deadline only moves earlier, and no hook runs twice.
//
// What is not known to have ended is never said to have ended: a pod whose status says
// nothing of a container is [RuntimeStuck] with [ErrUnknownContainers].
//
// # The way of a container
//
// The order is that of the kubelet's killContainer: the grace; the Killing event; the
// preStop hook, if there is time; the container's turn, if its pod has sidecars; what
// is left of the grace, 2 s at least; StopContainer. Hook, wait and stop share the
// grace, of which used time is taken off in whole seconds, once. The hooks of all
// containers begin together, those of sidecars included, unless [HooksAtTurn] is asked
// for. Sidecars stop after the main containers, the last declared first.
//
// A StopContainer that fails is asked again, after 100 ms at first and a second at most,
// each time with what is left of the grace; from a second after the deadline on, that is
// 0. One that is silent for StopSlack past its timeout is asked again with 0 beside it.
// The first failure is logged and is a FailedKillPod event, one for the pod, and so is
// logged that the container is stopped after all. Until GiveUp past the deadline the
// runtime has no peace.
//
// # What ends what
//
// The outcome of a container by what happens to it:
//
//	the container ends within its timeout          Graceful
//	StopContainer lasts as long as its timeout     GraceExceeded (1)
//	the runtime does not know the container        NotFound
//	it had exited, which only Start and the        NotFound
//	  ExitWatcher knew
//	a StopContainer with timeout 0 ends it         Forced
//	GiveUp is over, and none has succeeded         RuntimeStuck (2)
//	it was starting, and still is at the deadline  RuntimeStuck (2, 3)
//	its start panicked, or was cancelled and gave  RuntimeStuck (4)
//	  neither the ID nor ErrContainerNotFound
//	it was starting, and does not come up          NotFound
//	nobody knows its ID, or whether it runs        RuntimeStuck
//	Close                                          LeftRunning
//
// The outcome of its hook, and the cause in it:
//
//	it returns without error                       Completed, also in the moment that
//	                                                 it is cut
//	it returns an error, or panics                 Failed, a FailedPreStopHook event
//	the grace is over                              Cut, GraceSpent
//	the grace was shortened, and that is over      Cut, Shortened
//	its container exits during a sleep             Cut, ContainerExited
//	Close                                          Cut, AgentStopping
//	cut, and it has not returned 1 s later         Abandoned, with the cause
//	no time is left, it has run before, or         Skipped
//	  it is a sleep and the gate is off
//	the container has none                         ""
//
// (1) The runtime does not say whether it had to kill, but it kills when its timeout is
// over: a stop that took that long is taken for a kill. A container that ends in that
// very moment, or a runtime that is slow to answer, is taken for one as well.
//
// (2) [Terminator.KillPod] and [Terminator.KillContainer] ask for it again, under the old
// deadline.
//
// (3) If it comes up later, [Terminator.Start] stops it before it returns.
//
// (4) It may have started the container all the same.
//
// # Concurrency properties
//
// All methods may be called concurrently, by any number of callers for the same pod:
// they share its one termination. Terminations belong to the [Terminator]; a
// caller's context gives values, and bounds no more than that caller's waiting.
//
// A container that is being stopped has one goroutine, and each call of the embedder's
// code, a sleep of [NewHandlerRunner] excepted, has one beside it. [Terminator.Close]
// waits for all of them. [Terminator.Start] runs in its caller's goroutine, and so do the
// events of [Terminator.PostStart] and [Termination.Wait].
//
// Each pod has a mutex, and the terminator has one to find pods with. Neither is held
// while the embedder's code is called, or anything blocks.
//
// # Failure modes
//
// A hook that hangs is cancelled at the deadline, and the stop does not wait until it
// has returned; if it ignores its cancellation it is abandoned, counted, and named by
// Close. An event recorder that hangs costs no grace: the events of a container are
// recorded beside its way, one after the other, and waited for when it has ended, for a
// second at most. An [ExitWatcher] that hangs is waited for 2 s, of which those of a sleep count
// as slept.
//
// A runtime that fails or is silent costs a container no grace. One whose turn comes
// after such a container is stopped at the deadline; its pod ends at the latest GiveUp
// after its deadline, and may be killed again.
//
// Code of the embedder's that panics, or that ends its goroutine, is an error of the
// container that it was called for, and its stack is logged: a hook has failed, a
// StopContainer is asked again, and what a start has started is not known.
//
// An agent that stops leaves its containers running, and says so; the one that
// follows it goes on with [graceperiod.LeftOfDeletion] and [Container.PreStopDone].
//
// # Testing
//
// Package lifecycletest has a runtime whose containers follow a script, and records
// what was asked of it. It works in testing/synctest bubbles, as this package does:
// a grace of an hour passes in no time, to the nanosecond.
package lifecycle
