//go:build go1.25

package lifecycle_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// An agent that forgets each ended pod does not grow: after 10,000 pods the terminator has no pod and no
// goroutine left.
func TestForgetFreesPodsAndGoroutines(t *testing.T) {
	tr, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: newWorkingRuntime()})
	require.NoError(t, err)
	ctx, pods, before := klog.NewContext(t.Context(), klog.Logger{}), runningPods(10_000), runtime.NumGoroutine()
	for some := range slices.Chunk(pods, 100) {
		var kills sync.WaitGroup
		for _, pod := range some {
			kills.Go(func() { <-tr.Terminate(ctx, pod, lifecycle.Request{}).Done() })
		}
		kills.Wait()
	}
	require.Equal(t, len(pods), tr.Pods())
	for _, pod := range pods {
		tr.Forget(pod)
	}
	require.Zero(t, tr.Pods())
	require.NoError(t, tr.Close(ctx))
	require.LessOrEqual(t, runtime.NumGoroutine(), before+10, "other tests may have started some")
}

// A pod without a UID is identified by namespace and name, so a copy joins the same termination, and a pod
// with another name does not.
func TestPodWithoutUIDIsIdentifiedByName(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.pod.UID = ""
		other := b.pod.DeepCopy()
		other.Name = "other"
		b.rt.SetLists(lifecycletest.Lists{Takes: time.Second}) // so that the terminations are in progress
		first := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		require.Same(b, first, b.Terminate(b.Context(), b.pod.DeepCopy(), lifecycle.Request{}))
		require.NotSame(b, first, b.Terminate(b.Context(), other, lifecycle.Request{}))
		b.Forget(b.pod)
		_, found := b.Termination(b.pod)
		require.False(b, found)
	})
}
