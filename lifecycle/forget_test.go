//go:build go1.25

package lifecycle_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

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
