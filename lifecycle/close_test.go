//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// StopContainer runs until its context ends. Close ends the context with a cause that says so, so that a
// runtime can distinguish Close from a timeout.
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

// slowRecorder takes this long for each event.
type slowRecorder time.Duration

func (r slowRecorder) Event(runtime.Object, string, string, string) { <-time.After(time.Duration(r)) }

// The recorder takes until 1.5 s for the Killing event of 0 s. Close at 1 s ends the termination at once all
// the same.
func TestCloseDoesNotWaitForEvents(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		time.AfterFunc(time.Second, func() { require.NoError(b, b.Close(b.Context())) })
		<-termination.Done()
		require.Equal(b, time.Second, b.elapsed())
		<-time.After(time.Minute) // the recorder returns, because no goroutine may outlive the bubble
	}, func(o *lifecycle.TerminatorOptions) { o.Events = slowRecorder(1500 * time.Millisecond) })
}

// After Close every method fails with ErrClosed, and the terminator keeps nothing of the pod.
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

// A list at 2 s, the deadline, shows that a container has ended. Its hook ignores its cancellation, so the stop waits for
// the hook until 3 s. A list at 2.5 s has the container again, and Close is called at 2.6 s: the container is left
// running, which is no failure of the runtime.
func TestCloseLeavesAContainerThatIsListedAgain(t *testing.T) {
	inBubble(t, graceSeconds(2), func(b *testBed) {
		released := make(chan struct{})
		b.addMain("app", scriptedExec(), lifecycletest.Script{Exec: func(context.Context, []string) ([]byte, error) {
			<-released
			return nil, nil
		}})
		termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
		b.sleepUntil(2500 * time.Millisecond)
		require.Equal(b, lifecycle.OutcomeGraceful, termination.Result().Containers[0].Outcome)
		b.rt.SetLists(lifecycletest.Lists{HasEnded: true})
		b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
		b.sleepUntil(2600 * time.Millisecond)
		close(released)
		require.NoError(b, b.Close(b.Context()))
		result := termination.Result().Containers[0]
		require.Equal(b, lifecycle.OutcomeLeftRunning, result.Outcome)
		require.ErrorIs(b, result.Err, lifecycle.ErrClosed)
	})
}
