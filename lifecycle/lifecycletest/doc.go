// Package lifecycletest has a container runtime without containers, for the
// tests and demonstrations of agents that embed package lifecycle:
//
//	func TestAgentStopsItsPod(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			rt := lifecycletest.NewRuntime()
//			rt.Start("app", lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
//			terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt, Exits: rt})
//			require.NoError(t, err)
//
//			pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app"}}}}
//			result, err := terminator.KillPod(t.Context(), pod, lifecycle.Request{
//				GracePeriodSeconds: ptr.To(int64(30)),
//				Containers:         []lifecycle.Container{{Name: "app", ID: "app"}},
//			})
//			require.NoError(t, err)
//			require.Equal(t, lifecycle.Graceful, result.Outcome())
//			require.Equal(t, lifecycletest.ByTerm, rt.Exits()[0].By)
//		})
//	}
//
// A [Script] says what a container does: how it starts, how long it takes to end after
// the stop signal, whether it ignores that signal, whether it ends by itself, with which
// exit code, and which calls of the runtime fail or hang. [Runtime.Away] takes the whole
// runtime away for a while. What the agent did is read back with [Runtime.Stops],
// [Runtime.Execs], [Runtime.Signals] and [Runtime.Exits]; [Events] keeps the events that
// were recorded.
//
// The runtime answers as containerd does: a StopContainer with timeout 0 kills at
// once; a second, parallel StopContainer with a smaller timeout kills at the second
// one's timeout, and both return; one whose context ends returns early and kills
// nobody; the stop of an exited container succeeds, that of an unknown one wraps
// [lifecycle.ErrContainerNotFound], unless [Runtime.AnswerNilForUnknown] has it succeed
// as in containerd 2.
//
// # Concurrency properties
//
// All methods may be called concurrently. A container's life is timers, and a
// blocked call is blocked in its caller's goroutine; only a scripted command has a
// goroutine beside it, which ends before the call returns. No mutex is held while
// anything waits, so the runtime works inside testing/synctest bubbles, where time is
// exact and free, and outside of them, where a scripted second takes a second.
//
// # Failure modes
//
// Only those that were asked for: [Script.HangStops], [Script.FailStops],
// [Script.StartErr] and [Runtime.Away]. A hung
// call ends with its context, or, where [Script.HangDeaf] is set, with
// [Runtime.Release]; a test in a bubble must release before it ends.
//
// # Testing
//
// This package is for tests. Its limits: a container hears one stop signal and SIGKILL,
// and there are no pods, images or volumes.
package lifecycletest
