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

func TestASidecarIsRestartedUntilItsTurn(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfter: 5 * time.Second})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 20 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-b.rt.Exited("proxy")
		again, left := termination.ShouldRestart("proxy")
		require.True(b, again)
		require.Equal(b, 55*time.Second, left)
		require.NoError(b, b.Start(b.Context(), b.pod, "proxy", func(context.Context) (string, error) {
			b.rt.Start("proxy-2", lifecycletest.Script{ExitAfterTerm: time.Second})
			return "proxy-2", nil
		}))
		<-termination.Done()
		b.requireStop("proxy-2", 40, 20*time.Second)
		require.Equal(b, "proxy-2", termination.Result().Containers[1].ID)
		require.Equal(b, 21*time.Second, b.at())
		again, _ = termination.ShouldRestart("proxy")
		require.False(b, again)
	})
}

func TestContainersThatAreNotRestarted(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfterTerm: 30 * time.Second})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 20 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		for _, name := range []string{"app", "unknown"} {
			again, left := termination.ShouldRestart(name)
			require.False(b, again, name)
			require.Zero(b, left, name)
		}
		<-time.After(25 * time.Second)
		again, _ := termination.ShouldRestart("proxy") // it is being stopped
		require.False(b, again)
		require.ErrorIs(b, b.Start(b.Context(), b.pod, "proxy", nil), lifecycle.ErrTerminating)
	})
	inBubble(t, 5, func(b *bed) { // its grace is over, and it is being stopped
		b.addSidecar("proxy", nil, lifecycletest.Script{IgnoreTerm: true})
		b.addMain("app", nil, lifecycletest.Script{HangStops: 1})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(6 * time.Second)
		again, _ := termination.ShouldRestart("proxy")
		require.False(b, again)
		<-termination.Done()
	})
	inBubble(t, 1, func(b *bed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		again, _ := b.Terminate(b.Context(), b.pod, lifecycle.Request{}).ShouldRestart("proxy")
		require.False(b, again, "the grace is 1 s (KEP-4438)")
	})
}

func TestRestartThatReturnsAfterItsTurnIsStopped(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfter: 5 * time.Second})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 10 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-b.rt.Exited("proxy")
		var cause error
		err := b.Start(b.Context(), b.pod, "proxy", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			<-time.After(3 * time.Second)
			b.rt.Start("proxy-2", lifecycletest.Script{ExitAfterTerm: 2 * time.Second})
			return "proxy-2", nil
		})
		require.ErrorIs(b, err, lifecycle.ErrTerminating)
		require.ErrorIs(b, cause, lifecycle.ErrTerminating)
		<-termination.Done()
		b.requireStop("proxy-2", 47, 13*time.Second) // it has what is left, as any other
		require.Equal(b, 15*time.Second, b.at())
	})
}

func TestARestartThatFailsMayBeTriedAgain(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfter: time.Second})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 10 * time.Second})
		b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-b.rt.Exited("proxy")
		fail := func(context.Context) (string, error) { return "", lifecycletest.ErrScripted }
		require.ErrorIs(b, b.Start(b.Context(), b.pod, "proxy", fail), lifecycletest.ErrScripted)
		require.ErrorIs(b, b.Start(b.Context(), b.pod, "proxy", fail), lifecycletest.ErrScripted)
	})
}
