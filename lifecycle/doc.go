// Package lifecycle ends pods as the kubelet does, in any node agent: grace period,
// Killing event, preStop hooks, the order of sidecars and StopContainer, for a pod
// under one deadline that only ever moves earlier.
//
//	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
//		Runtime: runtime, // StopContainer, as in the container runtime interface
//		Hooks:   lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{Commands: runtime}),
//		Exits:   runtime, // tells when a container has exited
//		Events:  recorder,
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
// # The way of a container
//
// The order is that of the kubelet's killContainer: the grace; the Killing event; the
// preStop hook, if there is time; the container's turn, if its pod has sidecars; what
// is left of the grace, 2 s at least; StopContainer. Hook, wait and stop share the
// grace, of which used time is taken off in whole seconds, once. The hooks of all
// containers begin together, those of sidecars included, unless [HooksAtTurn] is asked
// for. Sidecars stop after the main containers, the last declared first.
//
// # What ends what
//
// The outcome of a container by what happens to it:
//
//	the container ends within its timeout          Graceful
//	StopContainer lasts as long as its timeout     GraceExceeded (1)
//	the runtime does not know the container        NotFound
//	StopContainer fails, or is silent for          Forced, after one StopContainer
//	  StopSlack past its timeout                     with timeout 0
//	and that one fails or is silent, too           RuntimeStuck
//	it was starting, and still is at the deadline  RuntimeStuck (2)
//	it was starting, and does not come up          NotFound
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
// (2) If it comes up later, [Terminator.Start] stops it before it returns.
//
// # Concurrency properties
//
// All methods may be called concurrently, by any number of callers for the same pod:
// they share its one termination. Terminations belong to the [Terminator]; a
// caller's context gives values, and bounds no more than that caller's waiting.
//
// A termination is driven by what happens. A goroutine exists for each call that may
// block, one per hook and one per StopContainer; waiting for a turn, for a deadline or
// for the exit that ends a sleep takes none. (Where the runner of hooks is not that of
// [NewHandlerRunner], the exit takes one.)
// [Terminator.Close] waits for all of them. [Terminator.Start] and
// [Terminator.PostStart] run in their caller's goroutine.
//
// No mutex is held while a hook, the runtime, the event recorder or the metrics are
// called. The recorder is called in the goroutine of Terminate, for the Killing
// events, and in those of hooks: one that blocks holds them up.
//
// # Failure modes
//
// A hook that hangs is cancelled at the deadline, and the stop does not wait until it
// has returned; if it ignores its cancellation it is abandoned, counted, and named by
// Close. A hook that panics has failed.
//
// A runtime that fails is asked once more, with timeout 0; one that is silent for
// [TerminatorOptions.StopSlack] past its timeout, too. If that does not help, the container
// is RuntimeStuck and those that wait for it go on: a pod ends at the latest 2 s and
// twice the slack after its deadline. The agent may try again with
// [Terminator.KillContainer]; no hook is run twice.
//
// An agent that stops leaves its containers running, and says so; the one that
// follows it goes on with [graceperiod.LeftOfDeletion] and [Container.PreStopDone].
//
// What the terminator knows of a pod it keeps until [Terminator.Forget].
//
// # Testing
//
// Package lifecycletest has a runtime whose containers follow a script, and records
// what was asked of it. It works in testing/synctest bubbles, as this package does:
// a grace of an hour passes in no time, to the nanosecond.
package lifecycle
