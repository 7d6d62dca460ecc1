package virtualkubelet_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// racedPods is the environment variable with the number of pods of TestDeletionsThatRaceWithCreations.
const racedPods = "KUBEGRACE_RACED_PODS"

// manyPods returns the number of pods of a test: that of an environment variable, or less.
func manyPods(t *testing.T, variable string, least int) int {
	text := os.Getenv(variable)
	if text == "" {
		return least
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// numbered is one of many pods.
func numbered(i int) *v1.Pod {
	pod := podOf(running("app"), running("web"))
	pod.Name, pod.UID = fmt.Sprint("pod-", i), types.UID(fmt.Sprint("uid-", i))
	return pod
}

// Each of two DeletePods races with the CreatePod of its pod. No hook runs twice, no container
// is stopped twice or runs on, and each pod has ended.
func TestDeletionsThatRaceWithCreations(t *testing.T) {
	for left := manyPods(t, racedPods, 5_000); left > 0; left -= 500 {
		inBubble(t, func(b *bed) {
			b.rt.start = func(context.Context, string) error { runtime.Gosched(); return nil }
			var callers sync.WaitGroup
			for i := range min(left, 500) {
				pod := numbered(i)
				callers.Go(func() { require.NoError(b, b.CreatePod(b.Context(), pod)) })
				for spins := range 2 {
					callers.Go(func() {
						for range spins * (i % 7) {
							runtime.Gosched()
						}
						_ = b.DeletePod(b.Context(), deleted(pod, 30, time.Now())) // it may not know the pod yet
					})
				}
			}
			callers.Wait()
			synctest.Wait()
			for i := range min(left, 500) {
				pod := numbered(i)
				_ = b.DeletePod(b.Context(), deleted(pod, 30, time.Now())) // most are gone
			}
			wait(time.Minute)
			hooks, stops := map[string]int{}, map[string]int{}
			for _, e := range b.rt.Execs() {
				hooks[e.ID]++
				require.Equal(b, 1, hooks[e.ID], "hooks of %s", e.ID)
			}
			for _, s := range b.rt.Stops() {
				stops[s.ID]++
				require.Equal(b, 1, stops[s.ID], "stops of %s", s.ID)
				_, exited := b.rt.Runtime.ExitCode(s.ID)
				require.True(b, exited)
			}
			pods, err := b.GetPods(b.Context())
			require.NoError(b, err)
			require.Empty(b, pods)
		})
	}
}

// Pods whose runtime tells of no exit leave no goroutine behind when they have ended.
func TestPodsWithoutExitsLeaveNoGoroutine(t *testing.T) {
	pods := manyPods(t, "KUBEGRACE_DEAF_PODS", 500)
	inBubble(t, func(b *bed) {
		b.rt.deaf = true
		before := runtime.NumGoroutine()
		for i := range pods {
			pod := numbered(i)
			b.create(pod)
			b.deletePod(pod, 30)
			wait(time.Minute)
		}
		require.LessOrEqual(b, runtime.NumGoroutine(), before+5)
		list, err := b.GetPods(b.Context())
		require.NoError(b, err)
		require.Empty(b, list)
	})
}
