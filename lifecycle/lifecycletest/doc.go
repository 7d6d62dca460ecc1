// Package lifecycletest has a fake container runtime for tests of agents that use package lifecycle. In a
// testing/synctest bubble a grace period takes no real time:
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
//			require.Equal(t, lifecycle.OutcomeGraceful, result.Outcome())
//			require.Equal(t, lifecycletest.ByTerm, rt.Exits()[0].By)
//		})
//	}
//
// A [Script] describes how a container starts and ends, and which StopContainer calls fail, hang, or return
// early or late. [Lists] describes how the runtime lists containers. [Runtime.Away] makes the runtime
// unavailable. [Runtime.Stops], [Runtime.Execs] and [Runtime.Exits] return what happened, and [Events]
// records events.
//
// StopContainer behaves like containerd's:
//
//   - Timeout 0 kills immediately.
//   - A concurrent call with an earlier deadline kills at that deadline, and both calls return.
//   - If its context ends, the call returns and does not kill.
//   - It succeeds for a container that has exited. For an unknown container the error wraps
//     [lifecycle.ErrContainerNotFound].
//
// # Failures
//
// The runtime fails only as scripted. A hanging call ends with its context or, if [Script.HangIgnoresContext]
// is set, with [Runtime.Release]. A test in a bubble must then call Release before it ends.
//
// # Concurrency
//
// All methods may be called concurrently. No mutex is held while a call waits, so the runtime works in
// testing/synctest bubbles. Outside of a bubble, a scripted second takes a second.
//
// # Stability
//
// For tests: any release may change exported names.
package lifecycletest
