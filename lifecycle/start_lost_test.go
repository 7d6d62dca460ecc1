//go:build go1.25

package lifecycle_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// startAndPanic starts a declared container with a function that panics once the container runs.
func (b *bed) startAndPanic(name, id string) {
	b.Helper()
	err := b.Start(b.silentContext(), b.pod, name, func(context.Context) (string, error) {
		b.rt.Start(id, lifecycletest.Script{})
		panic("boom")
	})
	require.ErrorContains(b, err, "the start panicked: boom")
}

// A start that panicked may have started its container, also if the termination starts later.
func TestStartThatPanickedIsRemembered(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("app")
		b.addWaitingContainer("web")
		b.startAndPanic("app", "app")
		b.startAndPanic("app", "app")
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "the start panicked: boom")
		require.Len(b, result.Containers, 1)
		require.Equal(b, lifecycle.RuntimeStuck, result.Outcome())
		require.Empty(b, b.rt.Stops())

		b.rt.Exit("app")
		result, err = b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "the start panicked: boom", "that the status has it waiting proves nothing")
		require.Equal(b, lifecycle.RuntimeStuck, result.Outcome())
		result, err = b.KillPod(b.Context(), b.pod, lifecycle.Request{Complete: true})
		require.NoError(b, err)
		require.Equal(b, lifecycle.Graceful, result.Outcome())
	})
}

// A later status can tell what a start that panicked has started.
func TestContainerOfAStartThatPanicked(t *testing.T) {
	for name, test := range map[string]struct {
		later func(*bed)
		stops int
	}{
		"it runs by the status": {func(b *bed) {
			b.pod.Status.ContainerStatuses[0] = v1.ContainerStatus{
				Name: "app", ContainerID: "fake://app",
				State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(time.Second))}},
			}
		}, 1},
		"it has exited by the status": {func(b *bed) {
			b.rt.Exit("app")
			b.pod.Status.ContainerStatuses[0].State = v1.ContainerState{
				Terminated: &v1.ContainerStateTerminated{FinishedAt: metav1.NewTime(time.Now().Add(time.Second))},
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 30, func(b *bed) {
				b.addWaitingContainer("app")
				b.startAndPanic("app", "app")
				test.later(b)
				require.Equal(b, lifecycle.Graceful, b.kill().Outcome())
				require.Len(b, b.rt.Stops(), test.stops)
				<-b.rt.Exited("app")
			})
		})
	}
}

// A status from before the start does not say whether a container was started.
func TestOldStatusSaysNothingAboutAStartThatPanicked(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("app")
		require.NoError(b, b.startAfter("app", 0, lifecycletest.Script{})())
		b.pod.Status.ContainerStatuses[0] = v1.ContainerStatus{
			Name: "app", ContainerID: "fake://app", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
		}
		b.rt.Exit("app")
		b.startAndPanic("app", "app-2")
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "the start panicked: boom")
		require.Equal(b, lifecycle.RuntimeStuck, result.Outcome())
	})
}

// A start that was cancelled may have reached the runtime.
func TestCancelledStart(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("app")
		ctx, cancel := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			err := b.Start(ctx, b.pod, "app", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				b.rt.Start("app", lifecycletest.Script{})
				return "", ctx.Err()
			})
			require.ErrorIs(b, err, context.Canceled)
		})
		synctest.Wait()
		cancel()
		wg.Wait()
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, context.Canceled)
		require.Equal(b, lifecycle.RuntimeStuck, result.Outcome())
	})
}

// The status of a pod tells that a container has exited by its ID, or by its name if the ID
// is not known.
func TestTheExitOfAnotherContainerOfTheName(t *testing.T) {
	exit := func() v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ContainerID: "fake://app", FinishedAt: metav1.NewTime(time.Now().Add(time.Second)),
		}}
	}
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("app")
		require.NoError(b, b.Start(b.Context(), b.pod, "app", func(context.Context) (string, error) {
			b.rt.Start("app-2", lifecycletest.Script{})
			return "app-2", nil
		}))
		b.pod.Status.ContainerStatuses[0] = v1.ContainerStatus{Name: "app", ContainerID: "fake://app", State: exit()}
		require.Equal(b, lifecycle.Graceful, b.kill().Outcome())
		b.requireStop("app-2", 30, 0)
	})
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("app")
		b.startAndPanic("app", "app")
		b.rt.Exit("app")
		b.pod.Status.ContainerStatuses[0] = v1.ContainerStatus{Name: "app", ContainerID: "fake://app", State: exit()}
		require.Equal(b, lifecycle.Graceful, b.kill().Outcome())
		require.Empty(b, b.rt.Stops())
	})
}

// The end of another container of the name says nothing about a start that is under way, and
// panics then.
func TestAStartThatPanickedAfterAKill(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("app")
		var wg sync.WaitGroup
		wg.Go(func() {
			require.Error(b, b.Start(b.silentContext(), b.pod, "app", func(context.Context) (string, error) {
				<-time.After(2 * time.Second)
				panic("boom")
			}))
		})
		synctest.Wait()
		b.rt.Start("old", lifecycletest.Script{})
		_, err := b.KillContainer(b.Context(), b.pod, lifecycle.Container{Name: "app", ID: "old"}, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		wg.Wait()
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "the start panicked: boom")
		require.Equal(b, lifecycle.RuntimeStuck, result.Outcome())
	})
}
