//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// StopContainer runs until its context ends. Close ends the context with the cause CauseTerminatorClosed, so that a runtime
// can distinguish Close from a timeout.
func TestCloseCancelsStopContainerWithItsCause(t *testing.T) {
	var cause error
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.Terminate(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{containerNamed("app")}})
		<-time.After(time.Second)
		require.NoError(b, b.Close(b.Context()))
		require.Equal(b, lifecycle.CauseTerminatorClosed, cause)
		require.ErrorIs(b, cause, lifecycle.ErrClosed)
	}, func(o *lifecycle.TerminatorOptions) {
		o.Runtime = lifecycle.RuntimeFunc(func(ctx context.Context, _ string, _ int64) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		})
	})
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
