// Package lifecycletest has a fake container runtime for the tests and demonstrations of
// agents that use package lifecycle. In a bubble of testing/synctest a grace period takes no time:
//
//	package agent_test
//
//	import (
//		"testing"
//		"testing/synctest"
//		"time"
//
//		"github.com/stretchr/testify/require"
//		v1 "k8s.io/api/core/v1"
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//		"k8s.io/utils/ptr"
//
//		"github.com/kubegrace/kubegrace/lifecycle"
//		"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
//	)
//
//	func TestAgentStopsItsPod(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			rt := lifecycletest.NewRuntime()
//			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app"}}}}
//			rt.Start(pod, "app", "1", lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
//			terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt, Exits: rt})
//			require.NoError(t, err)
//
//			result, err := terminator.KillPod(t.Context(), pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(30))})
//			require.NoError(t, err)
//			require.Equal(t, lifecycle.Graceful, result.Outcome())
//			require.Equal(t, lifecycletest.ByTerm, rt.Exits()[0].By)
//		})
//	}
//
// A [Script] says what a container does: how it starts, how long it takes to end after its stop
// signal, whether it ends by itself, with which exit code, and which StopContainer calls fail, hang,
// or return early or late. [Lists] says how the runtime lists what runs: after a poll, slowly, with
// an error, never, or wrongly. [Runtime.Away] makes the whole runtime unavailable for a while.
// [Runtime.Stops], [Runtime.Execs], [Runtime.Signals] and [Runtime.Exits] return what has happened,
// and [Events] keeps the events that were recorded. [Unit] stops all containers of a pod together,
// for the Pods of [lifecycle.TerminatorOptions].
//
// StopContainer behaves as that of containerd:
//
//   - With timeout 0 it kills at once.
//   - A second, concurrent call with a shorter timeout kills at the end of that, and both
//     calls return.
//   - A call whose context ends returns early and does not kill.
//   - It succeeds for a container that has exited. For an unknown container the error wraps
//     [lifecycle.ErrContainerNotFound].
//
// A container gets one stop signal and then SIGKILL. There are no images and no volumes.
//
// # Concurrency properties
//
// All methods may be called concurrently. Containers are timers without goroutines, and a call
// blocks in its caller's goroutine. No mutex is held while anything waits, so the runtime works in
// testing/synctest bubbles, where time is exact and costs nothing, and outside of them, where a
// scripted second takes a second.
//
// # Failure modes
//
// The runtime fails only where a test asks for it. A call that hangs ends with its context or, if
// [Script.HangIgnoresContext] or the HangIgnoresContext of [Lists] is set, with [Runtime.Release], which a test in a
// bubble must call before it ends.
//
// # Stability
//
// For tests: what is exported may change in a patch release, and a program needs none of it.
package lifecycletest
