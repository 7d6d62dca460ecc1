//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A hook fails. OnHook gets the hook's error, and the container with PreStopDone set. The agent can store PreStopDone, so that the
// next agent does not run the hook again.
func TestOnHookGetsTheHooksErrorAndPreStopDone(t *testing.T) {
	var results []lifecycle.HookResult
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMainWithHook("app", scriptedExec(), lifecycletest.Script{})
		b.killPod()
		require.Len(b, results, 1)
		require.ErrorIs(b, results[0].Err, lifecycletest.ErrScripted)
	}, func(o *lifecycle.TerminatorOptions) {
		o.Hooks = hookFunc(func(context.Context) error { return lifecycletest.ErrScripted })
		o.OnHook = func(pod *v1.Pod, c lifecycle.Container, r lifecycle.HookResult) {
			require.Equal(t, "pod", pod.Name)
			require.Equal(t, "app", c.ID)
			require.True(t, c.PreStopDone)
			results = append(results, r)
		}
	})
}

// OnHook waits for the event recorder, which hangs. The first KillPod runs the hook, and its stop fails. A second KillPod, with
// another version of the pod, stops the container. When the recorder returns, OnHook gets the pod of the first KillPod.
func TestLateOnHookGetsThePodOfItsHook(t *testing.T) {
	var recorder hangingObserver
	got := make(chan *v1.Pod, 1)
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMainWithHook("app", sleepHandler(1), lifecycletest.Script{FailStops: 1})
		_, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{OneAttempt: true})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		laterVersion := b.pod.DeepCopy()
		laterVersion.Generation++
		_, err = b.KillPod(b.Context(), laterVersion, lifecycle.Request{OneAttempt: true})
		require.NoError(b, err)
		close(recorder) // it returns
		require.Equal(b, b.pod, <-got)
	}, func(o *lifecycle.TerminatorOptions) {
		recorder = make(hangingObserver)
		o.Events = recorder
		o.OnHook = func(pod *v1.Pod, _ lifecycle.Container, _ lifecycle.HookResult) { got <- pod }
	})
}
