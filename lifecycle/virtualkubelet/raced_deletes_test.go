//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// numberedPod returns the pod pod-i, with two containers that have an exec hook.
func numberedPod(i int) *v1.Pod {
	return podNamed(fmt.Sprint("pod-", i), withExecHook("app"), withExecHook("web"))
}

// racedRuntime counts, in concurrent, the StopContainer calls for a container that another call is stopping.
type racedRuntime struct {
	*scriptedRuntime

	stopping   sync.Map // the IDs of the containers that a call is stopping
	concurrent atomic.Int64
}

func (r *racedRuntime) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	if _, other := r.stopping.LoadOrStore(id, true); other {
		r.concurrent.Add(1)
	}
	defer r.stopping.Delete(id)
	runtime.Gosched()
	return r.scriptedRuntime.StopContainer(ctx, id, timeoutSeconds)
}

// For each of 500 pods, two DeletePods race with the pod's CreatePod. A third DeletePod follows, because both may have come
// before the CreatePod. No hook runs twice, no container has concurrent stops or keeps running, and each pod ends. The test
// races 4 times, because each race differs.
func TestDeletionsRacingWithCreations(t *testing.T) {
	const pods = 500
	for range 4 {
		rt := &racedRuntime{}
		inBubble(t, func(b *testbed) {
			b.rt.beforeStart = func(context.Context, string) error { runtime.Gosched(); return nil }
			var racing sync.WaitGroup
			for i := range pods {
				pod := numberedPod(i)
				racing.Go(func() { require.NoError(b, b.CreatePod(b.Context(), pod)) })
				for spins := range 2 {
					racing.Go(func() {
						for range spins * (i % 7) { // so that the two come at different times
							runtime.Gosched()
						}
						_ = b.DeletePod(b.Context(), deleted(pod, 30, time.Now())) // the pod may not be known yet
					})
				}
			}
			racing.Wait()
			synctest.Wait()
			for i := range pods {
				_ = b.DeletePod(b.Context(), deleted(numberedPod(i), 30, time.Now())) // most are gone
			}
			wait(time.Minute)
			hooks := map[string]int{}
			for _, e := range b.rt.Execs() {
				hooks[e.ID]++
				require.Equal(b, 1, hooks[e.ID], "hooks of %s", e.ID)
			}
			for _, s := range b.rt.Stops() {
				_, exited := b.rt.Runtime.ExitCode(s.ID)
				require.True(b, exited)
			}
			require.Zero(b, rt.concurrent.Load(), "two stops of one container at the same time")
			left, err := b.GetPods(b.Context())
			require.NoError(b, err)
			require.Empty(b, left)
		}, func(o *virtualkubelet.Options) {
			rt.scriptedRuntime = o.Runtime.(*scriptedRuntime) // the testbed's
			o.Runtime = rt
		})
	}
}

// Many pods are created and deleted one after the other on a runtime that only polls. No goroutine of a
// forgotten pod remains.
func TestPodsWithoutAnExitWatcherLeaveNoGoroutine(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.cannotWatchExits = true
		before := runtime.NumGoroutine()
		for i := range 100 {
			pod := numberedPod(i)
			b.create(pod)
			b.deleteWithGrace(pod, 30)
			wait(time.Minute)
		}
		require.LessOrEqual(b, runtime.NumGoroutine(), before+5, "far fewer than one for each pod")
		list, err := b.GetPods(b.Context())
		require.NoError(b, err)
		require.Empty(b, list)
	})
}
