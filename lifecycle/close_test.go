//go:build go1.25

package lifecycle_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// Close at 10 s, while one container waits, one runs its hook and one is being stopped. Nothing is killed,
// all are LeftRunning, and the terminator accepts nothing more.
func TestCloseLeavesEverythingRunning(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addMain("app", sleepHandler(40), lifecycletest.Script{})
		b.addMain("web", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(10 * time.Second)
		require.NoError(b, b.Close(b.Context()))
		<-termination.Done()
		require.Equal(b, 10*time.Second, b.elapsed())
		for _, c := range termination.Result().Containers {
			require.Equal(b, lifecycle.OutcomeLeftRunning, c.Outcome)
			require.ErrorIs(b, c.Err, lifecycle.ErrClosed)
		}
		require.Equal(b, lifecycle.CauseTerminatorClosed, termination.Result().Containers[0].Hook.Cause)

		b.Forget(b.pod)
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, lifecycle.ErrClosed)
		require.Len(b, b.rt.Stops(), 1)
	})
}

// A StopContainer call that Close cancels can tell so by the cause of its context.
func TestCloseCancelsStopContainerWithItsCause(t *testing.T) {
	var cause error
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.Terminate(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{containerNamed("app")}})
		<-time.After(time.Second)
		require.NoError(b, b.Close(b.Context()))
		require.Equal(b, lifecycle.CauseTerminatorClosed, cause)
	}, func(o *lifecycle.TerminatorOptions) {
		o.Runtime = lifecycle.RuntimeFunc(func(ctx context.Context, _ string, _ int64) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		})
	})
}

// The caller stops waiting after 1 s. The termination continues, and a later call joins it until the end of
// its 30 s.
func TestCallersContextEndsOnlyItsWait(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		result, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorContains(b, err, "ns/pod/app")
		require.Equal(b, lifecycle.PhaseStopping, result.Containers[0].Phase)
		b.killPod()
		require.Equal(b, 30*time.Second, b.elapsed())
	})
}

// Close at any moment of a termination (hook, stop, deadline, overdue) ends it at once, and does not count
// as a failure of the runtime. Ten times each, because goroutines race at the deadline.
func TestCloseDuringHooksWaitsAndStops(t *testing.T) {
	for _, after := range slices.Repeat([]time.Duration{time.Second, 5 * time.Second, 9 * time.Second, 10 * time.Second, 11 * time.Second}, 10) {
		inBubble(t, graceSeconds(10), func(b *testBed) {
			b.addSidecar("proxy", sleepHandler(2), lifecycletest.Script{IgnoreTerm: true})
			b.addMain("app", scriptedExec(), lifecycletest.Script{Exec: commandTaking(5 * time.Second), IgnoreTerm: true})
			b.addMain("web", nil, lifecycletest.Script{HangStops: -1})
			termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
			<-time.After(after)
			require.NoError(b, b.Close(b.Context()))
			require.NoError(b, b.Close(b.Context()))
			<-termination.Done()
			require.Equal(b, after, b.elapsed())
			require.Error(b, termination.Result().Err())
			require.False(b, b.Shorten(termination, 1))
			for _, event := range b.events.All() {
				require.NotEqual(b, "FailedKillPod", event.Reason, "closing is not a failure of the runtime")
			}
		})
	}
}

// The context of Terminate ends at once. The hook still sleeps for its 5 s.
func TestTerminationOutlivesItsCallersContext(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", sleepHandler(5), lifecycletest.Script{})
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(b.Context(), key{}, "a value"))
		termination := b.Terminate(ctx, b.pod, lifecycle.Request{})
		cancel()
		<-termination.Done()
		require.Equal(b, 5*time.Second, b.elapsed())
		require.Equal(b, lifecycle.OutcomeGraceful, termination.Result().Outcome())
	})
}

// slowRecorder takes a while for each event.
type slowRecorder time.Duration

func (r slowRecorder) Event(runtime.Object, string, string, string) { <-time.After(time.Duration(r)) }

// The recorder takes 1.5 s per event, but Close ends the termination at once.
func TestCloseDoesNotWaitForEvents(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		time.AfterFunc(time.Second, func() { require.NoError(b, b.Close(b.Context())) })
		<-termination.Done()
		require.Equal(b, time.Second, b.elapsed())
		<-time.After(time.Minute)
	}, func(o *lifecycle.TerminatorOptions) { o.Events = slowRecorder(1500 * time.Millisecond) })
}

// The hook ignores its context for 5 s, so that Close is still waiting when Shorten is called.
func TestShortenDuringCloseHasNoEffect(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Second)
		closed := make(chan error)
		go func() { closed <- b.Close(b.Context()) }()
		<-time.After(500 * time.Millisecond)
		require.False(b, b.Shorten(termination, 1))
		require.NoError(b, <-closed)
	}, withHooks(func(context.Context) error { <-time.After(5 * time.Second); return nil }))
}

// After Close every method fails with ErrClosed, and calls it gets then use no memory.
func TestClosedTerminatorKeepsNoPods(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		app := b.addMain("app", nil, lifecycletest.Script{})
		require.NoError(b, b.Close(b.Context()))
		require.ErrorIs(b, b.startContainer("app", "2", lifecycletest.Script{}), lifecycle.ErrClosed)
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, lifecycle.ErrClosed)
		require.Equal(b, lifecycle.OutcomeLeftRunning, result.Outcome())
		killed, err := b.KillContainer(b.Context(), b.pod, app, lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, lifecycle.ErrClosed)
		require.Equal(b, lifecycle.OutcomeLeftRunning, killed.Outcome)
		require.Zero(b, b.Pods())
	})
}

// The result of a container whose stop failed before Close has both errors: that it was closed, and why the
// stop had failed.
func TestLeftRunningContainerKeepsItsRuntimeError(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{FailStops: -1})
		termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
		b.sleepUntil(time.Second)
		require.NoError(b, b.Close(b.Context()))
		_, err := termination.Wait(b.Context())
		require.ErrorIs(b, err, lifecycle.ErrClosed)
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
	})
}

// Close before the first list has arrived. Until then every container of the spec may be running, so all
// are LeftRunning.
func TestCloseDuringAList(t *testing.T) {
	for name, lists := range map[string]lifecycletest.Lists{
		"hangs": {Hang: true}, "polls": {Poll: 5 * time.Second}, "fails": {Err: lifecycletest.ErrAway},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(30), func(b *testBed) {
				app := b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
				b.rt.SetLists(lists)
				termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
				killed := startCall(func() error {
					_, err := b.KillContainer(b.quietContext(), b.pod, app, lifecycle.ContainerRequest{})
					return err
				})
				b.sleepUntil(time.Second)
				require.NoError(b, b.Close(b.Context()))
				require.Equal(b, lifecycle.OutcomeLeftRunning, termination.Result().Outcome())
				require.ErrorIs(b, killed(), lifecycle.ErrClosed)
				require.Equal(b, time.Second, b.elapsed())
				require.Empty(b, b.rt.Exits())
			})
		})
	}
}

// A hook cancelled by Close is Cut and has not failed, whether the hook or its stop notices first. 100
// times, because the two race.
func TestHookCancelledByCloseHasNotFailed(t *testing.T) {
	for range 100 {
		inBubble(t, graceSeconds(30), func(b *testBed) {
			b.addMain("app", scriptedExec(), lifecycletest.Script{})
			termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
			b.sleepUntil(time.Second)
			require.NoError(b, b.Close(b.Context()))
			hook := termination.Result().Containers[0].Hook
			require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCut, Cause: lifecycle.CauseTerminatorClosed, Took: time.Second}, hook)
			b.requireEvents("Killing")
		}, withHooks(func(ctx context.Context) error { <-ctx.Done(); return lifecycletest.ErrScripted }))
	}
}
