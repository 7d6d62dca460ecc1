//go:build go1.25

package lifecycle_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A termination does not include a container that has exited, and ends without it.
func TestATerminationDoesNotWaitForTheHookOfAnExitedContainer(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("a", nil, lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		b.addMain("b", exec(), lifecycletest.Script{Exec: commandTaking(10 * time.Second)})
		term := b.Terminate(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{named("a")}})
		go func() { _, _ = b.RunOnExit(b.Context(), b.pod, named("b")) }()
		ctx, cancel := context.WithTimeout(b.Context(), 100*time.Second)
		defer cancel()
		r, err := term.Wait(ctx)
		require.NoError(b, err)
		require.Equal(b, lifecycle.Graceful, r.Outcome())
		require.Equal(b, 5*time.Second, b.at())
	})
	inBubble(t, 30, func(b *bed) {
		b.addMain("a", nil, lifecycletest.Script{ExitAfterTerm: 15 * time.Second})
		b.addMain("b", exec(), lifecycletest.Script{Exec: commandTaking(10 * time.Second)})
		term := b.Terminate(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{named("a")}})
		go func() { _, _ = b.RunOnExit(b.Context(), b.pod, named("b")) }()
		ctx, cancel := context.WithTimeout(b.Context(), 100*time.Second)
		defer cancel()
		r, err := term.Wait(ctx)
		require.NoError(b, err)
		require.Equal(b, lifecycle.Graceful, r.Outcome())
	})
}

// A KillContainer during RunOnExit means that the container runs after all.
func TestAKillDuringRunOnExitStopsTheContainer(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("a", exec(), lifecycletest.Script{Exec: commandTaking(10 * time.Second)})
		go func() { _, _ = b.RunOnExit(b.Context(), b.pod, named("a")) }()
		synctest.Wait()
		r, err := b.KillContainer(b.Context(), b.pod, named("a"), lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.Graceful, r.Outcome)
		require.Len(b, b.rt.Execs(), 1)
	})
}

// RunOnExit does not change the outcome of a container that is stuck.
func TestRunOnExitOfAStuckContainer(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", exec(), lifecycletest.Script{FailStops: -1})
		b.addMain("b", exec(), lifecycletest.Script{HangStops: 1, HangDeaf: true})
		term := b.Terminate(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(600))})
		r, _ := b.KillContainer(b.Context(), b.pod, named("app"), lifecycle.ContainerRequest{GracePeriodSeconds: ptr.To(int64(1))})
		require.Equal(b, lifecycle.RuntimeStuck, r.Outcome)
		go func() { _, _ = b.RunOnExit(b.Context(), b.pod, named("app")) }()
		synctest.Wait()
		b.rt.Release()
		ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
		defer cancel()
		r2, err := term.Wait(ctx)
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.Equal(b, lifecycle.RuntimeStuck, r2.Outcome())
	})
}

// If a container exits several times, with a new ID each time, the table keeps only one.
func TestRunOnExitKeepsOneContainerOfAName(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", exec(), lifecycletest.Script{})
		var pods []weak.Pointer[v1.Pod]
		for i := range 10 {
			pod := b.pod.DeepCopy()
			pods = append(pods, weak.Make(pod))
			_, err := b.RunOnExit(b.Context(), pod, lifecycle.Container{Name: "app", ID: string(rune('A' + i))})
			require.NoError(b, err)
		}
		runtime.GC()
		require.Nil(b, pods[0].Value())
	})
}

// A hook of RunOnExit that ignores the end of its context is waited for as the hook of a stop is.
func TestAHookOfRunOnExitThatIgnoresItsEnd(t *testing.T) {
	for takes, want := range map[time.Duration]lifecycle.HookResult{
		5500 * time.Millisecond: {Outcome: lifecycle.HookCompleted, Took: 5500 * time.Millisecond},
		time.Minute:             {Outcome: lifecycle.HookAbandoned, Cause: lifecycle.GraceSpent, Took: 6 * time.Second},
	} {
		inBubble(t, 5, func(b *bed) {
			b.addMain("app", exec(), lifecycletest.Script{})
			hook, err := b.RunOnExit(b.silentContext(), b.pod, named("app"))
			require.NoError(b, err)
			require.Equal(b, want, hook)
			require.Equal(b, want.Took, b.at())
		}, withHooks(func(context.Context) error { <-time.After(takes); return nil }))
	}
}
