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

func TestCloseLeavesEverythingRunning(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addMain("app", sleep(40), lifecycletest.Script{})
		b.addMain("web", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(10 * time.Second)
		require.NoError(b, b.Close(b.Context()))
		<-termination.Done()
		require.Equal(b, 10*time.Second, b.at())
		for _, c := range termination.Result().Containers {
			require.Equal(b, lifecycle.LeftRunning, c.Outcome)
			require.ErrorIs(b, c.Err, lifecycle.AgentStopping)
		}
		require.Equal(b, lifecycle.AgentStopping, termination.Result().Containers[0].Hook.Cause)

		b.Forget(b.pod.UID)
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, lifecycle.AgentStopping)
		require.Len(b, b.rt.Stops(), 1)
	})
}

// waitingRuntime is a runtime whose calls wait for the end of their context and record its cause.
type waitingRuntime struct{ cause error }

func (w *waitingRuntime) StopContainer(ctx context.Context, _ string, _ int64) error {
	<-ctx.Done()
	w.cause = context.Cause(ctx)
	return w.cause
}

func TestCloseTellsTheRuntimeWhyItsCallEnds(t *testing.T) {
	var runtime waitingRuntime
	inBubble(t, 60, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{})
		b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Second)
		require.NoError(b, b.Close(b.Context()))
		require.Equal(b, lifecycle.AgentStopping, runtime.cause)
	}, func(o *lifecycle.TerminatorOptions) { o.Runtime = &runtime })
}

func TestCallersContextOnlyEndsItsWait(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		result, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorContains(b, err, "ns/pod/app")
		require.Equal(b, lifecycle.PhaseStopping, result.Containers[0].Phase)
		b.kill()
		require.Equal(b, 30*time.Second, b.at())
	})
}

func TestCloseWhileMuchIsUnderWay(t *testing.T) {
	for _, after := range slices.Repeat([]time.Duration{0, time.Second, 5 * time.Second, 9 * time.Second, 10 * time.Second, 11 * time.Second}, 10) {
		inBubble(t, 10, func(b *bed) {
			b.addSidecar("proxy", sleep(2), lifecycletest.Script{IgnoreTerm: true})
			b.addMain("app", exec(), lifecycletest.Script{Exec: commandTaking(5 * time.Second), IgnoreTerm: true})
			b.addMain("web", nil, lifecycletest.Script{HangStops: -1})
			termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
			<-time.After(after)
			require.NoError(b, b.Close(b.Context()))
			require.NoError(b, b.Close(b.Context()))
			<-termination.Done()
			require.Equal(b, after, b.at())
			require.Error(b, termination.Result().Err())
			require.False(b, termination.Shorten(1))
			for _, event := range b.events.All() {
				require.NotEqual(b, "FailedKillPod", event.Reason, "the agent leaves, the runtime does not fail")
			}
		})
	}
}

func TestATerminationDoesNotEndWithItsCaller(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", sleep(5), lifecycletest.Script{})
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(b.Context(), key{}, "a value"))
		termination := b.Terminate(ctx, b.pod, lifecycle.Request{})
		cancel()
		<-termination.Done()
		require.Equal(b, 5*time.Second, b.at())
		require.Equal(b, lifecycle.Graceful, termination.Result().Outcome())
	})
}

func TestForgetDoesNotEndATermination(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		first := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		b.Forget(b.pod.UID)
		require.NotSame(b, first, b.Terminate(b.Context(), b.pod, lifecycle.Request{}))
		require.NoError(b, b.Close(b.Context()))
		require.Equal(b, lifecycle.LeftRunning, first.Result().Outcome())
	})
}

func TestAPodWithoutUIDHasItsNameAsKey(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.pod.UID = ""
		other := b.pod.DeepCopy()
		other.Name = "other"
		first := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		require.Same(b, first, b.Terminate(b.Context(), b.pod, lifecycle.Request{}))
		require.NotSame(b, first, b.Terminate(b.Context(), other, lifecycle.Request{}))
		b.Forget("ns/pod")
		require.NotSame(b, first, b.Terminate(b.Context(), b.pod, lifecycle.Request{}))
	})
}

// A closed terminator accepts calls for new pods, but must not keep tables for them.
func TestClosedTerminatorKeepsNoPods(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{})
		require.NoError(b, b.Close(b.Context()))
		started := b.Start(b.Context(), b.pod, "app", func(context.Context) (string, error) { return "app", nil })
		require.ErrorIs(b, started, lifecycle.AgentStopping)
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, lifecycle.AgentStopping)
		require.Equal(b, lifecycle.LeftRunning, result.Outcome())
		_, err = b.KillContainer(b.Context(), b.pod, lifecycle.Container{Name: "app", ID: "app"}, lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, lifecycle.AgentStopping)
		require.Zero(b, b.Tables())
	})
}

// slowRecorder takes a while for each event.
type slowRecorder time.Duration

func (r slowRecorder) Event(runtime.Object, string, string, string) { <-time.After(time.Duration(r)) }

// Close waits for no event before it ends a termination.
func TestATerminationEndsWithTheAgentBeforeItsEvents(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		time.AfterFunc(time.Second, func() { require.NoError(b, b.Close(b.Context())) })
		<-termination.Done()
		require.Equal(b, time.Second, b.at())
		<-time.After(time.Minute)
	}, func(o *lifecycle.TerminatorOptions) { o.Events = slowRecorder(1500 * time.Millisecond) })
}

// A container that is left running has the error of its runtime, too.
func TestWhyAContainerIsLeftRunning(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.runs("app", "a", lifecycletest.Script{FailStops: -1})
		termination := b.life.Terminate(b.ctx, lifecycle.Request{})
		<-time.After(time.Second)
		require.NoError(b, b.tr.Close(b.ctx))
		_, err := termination.Wait(b.ctx)
		require.ErrorIs(b, err, lifecycle.AgentStopping)
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.ErrorIs(b, b.start("app", "b", lifecycletest.Script{}), lifecycle.AgentStopping)
	})
}

// A container whose end the runtime and the watcher have said has ended, also if the agent stops
// in the same moment.
func TestAnEndInTheMomentOfClose(t *testing.T) {
	exited := make(chan struct{})
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(500 * time.Millisecond)
		close(exited)
		require.NoError(b, b.Close(b.Context()))
		require.Equal(b, lifecycle.Graceful, termination.Result().Outcome())
	}, func(o *lifecycle.TerminatorOptions) {
		exited = make(chan struct{})
		o.Exits = exitFunc(func(string) <-chan struct{} { return exited })
	})
}

// A termination that Close ends is not shortened any more.
func TestAShorteningDuringClose(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", exec(), lifecycletest.Script{})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Second)
		closed := make(chan error)
		go func() { closed <- b.Close(b.Context()) }()
		<-time.After(500 * time.Millisecond)
		require.False(b, termination.Shorten(1))
		require.NoError(b, <-closed)
	}, withHooks(func(context.Context) error { <-time.After(5 * time.Second); return nil }))
}
