//go:build go1.25

package lifecycle_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// Forget removes what is known of containers for which nothing is under way.
func TestForgetRemovesStartedContainers(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("app")
		require.NoError(b, b.startAfter("app", 0, lifecycletest.Script{})())
		require.Equal(b, 1, b.Tables())
		b.Forget(b.pod.UID)
		require.Zero(b, b.Tables())
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Complete: true})
		require.NoError(b, err)
		require.Empty(b, b.rt.Stops())
	})
}

// A pod whose only start fails becomes unknown. A container that is started at that moment is
// known all the same.
func TestAStartWhileItsPodBecomesUnknown(t *testing.T) {
	tr, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycletest.NewRuntime()})
	require.NoError(t, err)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"}}
	start := func(id string, result error) error {
		return tr.Pod(pod).Start(t.Context(), "app", func(context.Context) (string, error) { return id, result })
	}
	var wg sync.WaitGroup
	var over atomic.Bool
	wg.Go(func() {
		for !over.Load() {
			require.Error(t, start("", lifecycle.ErrContainerNotFound))
		}
	})
	for i := range 10_000 {
		if !assert.NoError(t, start("app", nil)) {
			break
		}
		result, err := tr.KillPod(t.Context(), pod, lifecycle.Request{Complete: true})
		stopped := slices.ContainsFunc(result.Containers, func(c lifecycle.ContainerResult) bool { return c.ID == "app" })
		if !assert.NoError(t, err) || !assert.True(t, stopped, i) {
			break
		}
		tr.ForgetPod(pod.UID)
	}
	over.Store(true)
	wg.Wait()
	require.NoError(t, tr.Close(t.Context()))
}

// What a termination has ended that outlives its life is known in the next one: no hook runs twice.
func TestATerminationThatOutlivesItsLife(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.runs("proxy", "p", lifecycletest.Script{ExitAfterTerm: 20 * time.Second})
		b.runs("app", "a", lifecycletest.Script{})
		b.life.Terminate(b.ctx, lifecycle.Request{})
		<-time.After(time.Second)
		b.life.Forget()
		_, err := b.tr.KillPod(b.ctx, b.showing("a", v1.ContainerState{Running: &v1.ContainerStateRunning{}}), lifecycle.Request{})
		require.NoError(b, err)
		b.requireHooks("a", "p")
	})
}

// A life that is forgotten while the watcher is asked is over for its handle.
func TestAPodThatIsForgottenWhileTheWatcherIsAsked(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.runs("app", "a", lifecycletest.Script{})
		_, err := b.kill(lifecycle.Request{})
		require.NoError(b, err)
		time.AfterFunc(20*time.Millisecond, b.life.Forget)
		_, err = b.kill(lifecycle.Request{Containers: only("app", "a"), Complete: true})
		require.ErrorIs(b, err, lifecycle.ErrForgotten)
	}, func(b *lifeBed, o *lifecycle.TerminatorOptions) {
		o.Exits = exitFunc(func(id string) <-chan struct{} { <-time.After(50 * time.Millisecond); return b.rt.Exited(id) })
	})
}

// A container that was stopped while its start was under way is known by its ID when the start
// returns, also after Forget: its hook does not run again.
func TestAStartThatReturnsWhatWasStoppedBeforeForget(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		started := make(chan error)
		go func() {
			started <- b.life.Start(b.ctx, "app", func(context.Context) (string, error) {
				b.rt.Start("a", lifecycletest.Script{})
				<-time.After(10 * time.Second)
				return "a", nil
			})
		}()
		<-time.After(time.Second)
		_, err := b.life.KillContainer(b.ctx, lifecycle.Container{Name: "app", ID: "a"}, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		b.life.Forget()
		require.NoError(b, <-started)
		_, err = b.tr.KillPod(b.ctx, b.spec, lifecycle.Request{})
		require.NoError(b, err)
		b.requireHooks("a")
	})
}
