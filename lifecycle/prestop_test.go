//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A hook's context has the deadline of the termination. After Shorten the context ends at the new deadline, with
// a cause that says so.
func TestHookContextHasItsDeadlineAndCause(t *testing.T) {
	var cause error
	var deadline time.Time
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Second)
		synctest.Wait()
		require.Equal(b, 60*time.Second, deadline.Sub(b.start))
		b.Shorten(termination, 3)
		<-termination.Done()
		require.Equal(b, lifecycle.CauseShortened, cause)
	}, withHooks(func(ctx context.Context) error {
		deadline, _ = ctx.Deadline()
		<-ctx.Done()
		cause = context.Cause(ctx)
		return cause
	}))
}

// Without the option Hooks, the terminator runs sleep hooks itself; exec hooks need Commands.
func TestDefaultRunnerRunsHooks(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", sleepHandler(3), lifecycletest.Script{})
		b.addMain("web", scriptedExec(), lifecycletest.Script{})
		result := b.killPod()
		require.Equal(b, lifecycle.HookCompleted, result.Containers[0].Hook.Outcome)
		require.ErrorContains(b, result.Containers[1].Hook.Err, "no command runner")
	}, func(o *lifecycle.TerminatorOptions) { o.Hooks = nil })
}

// OnHook waits behind a recorder that hangs. Before OnHook is called, a second request, with a copy of the pod,
// begins to stop the container again. OnHook gets the pod object of the first request, with which the hook ran.
func TestLateOnHookGetsThePodOfItsHook(t *testing.T) {
	observer, got := make(hangingObserver), make(chan *v1.Pod, 1)
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", sleepHandler(1), lifecycletest.Script{FailStops: 1})
		_, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{OneAttempt: true})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		_, err = b.KillPod(b.Context(), b.pod.DeepCopy(), lifecycle.Request{OneAttempt: true})
		require.NoError(b, err)
		close(observer)
		require.Same(b, b.pod, <-got)
	}, func(o *lifecycle.TerminatorOptions) {
		observer = make(hangingObserver)
		o.Events = observer
		o.OnHook = func(pod *v1.Pod, _ lifecycle.Container, _ lifecycle.HookResult) { got <- pod }
	})
}

// A hook returns an error exactly at the deadline, just before or after its cancellation. It counts as Cut, not as
// Failed, either way. The test tries that 100 times, because the two race.
func TestHookThatFailsAtTheDeadlineIsCut(t *testing.T) {
	for range 100 {
		inBubble(t, graceSeconds(5), func(b *testBed) {
			b.addMain("app", scriptedExec(), lifecycletest.Script{})
			require.Equal(b, lifecycle.CauseGraceSpent, b.killPod().Containers[0].Hook.Cause)
			b.requireEvents("Killing")
		}, withHooks(func(context.Context) error { <-time.After(5 * time.Second); return lifecycletest.ErrScripted }))
	}
}
