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

// A hook fails. OnHook gets the error that the hook has returned, and the container with PreStopDone set. If the agent stores
// PreStopDone, the next agent does not run the hook again.
func TestOnHookGetsTheHooksErrorAndPreStopDone(t *testing.T) {
	var results []lifecycle.HookResult
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{})
		b.killPod()
		require.Len(b, results, 1)
		require.ErrorIs(b, results[0].Err, lifecycletest.ErrScripted)
	}, withHooks(func(context.Context) error { return lifecycletest.ErrScripted }), func(o *lifecycle.TerminatorOptions) {
		o.OnHook = func(pod *v1.Pod, c lifecycle.Container, r lifecycle.HookResult) {
			require.Equal(t, "pod", pod.Name)
			require.Equal(t, "app", c.ID)
			require.True(t, c.PreStopDone, "for the next agent")
			results = append(results, r)
		}
	})
}

// OnHook waits for the event recorder, which hangs. The first KillPod fails after its hook has run. A second KillPod, with a
// changed copy of the pod, stops the container. When the recorder returns at last, OnHook gets the pod object of the first
// KillPod, with which the hook ran.
func TestLateOnHookGetsThePodOfItsHook(t *testing.T) {
	var observer hangingObserver // made in the bubble that waits for it
	got := make(chan *v1.Pod, 1)
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", sleepHandler(1), lifecycletest.Script{FailStops: 1})
		_, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{OneAttempt: true})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		later := b.pod.DeepCopy()
		later.Generation++
		_, err = b.KillPod(b.Context(), later, lifecycle.Request{OneAttempt: true})
		require.NoError(b, err)
		close(observer)
		require.Equal(b, b.pod, <-got)
	}, func(o *lifecycle.TerminatorOptions) {
		observer = make(hangingObserver)
		o.Events = observer
		o.OnHook = func(pod *v1.Pod, _ lifecycle.Container, _ lifecycle.HookResult) { got <- pod }
	})
}
