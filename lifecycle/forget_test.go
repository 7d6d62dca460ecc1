//go:build go1.25

package lifecycle_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// An agent that forgets each ended pod does not grow: after 10,000 pods neither a pod nor a goroutine
// remains.
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

// Forget stops nothing: the termination continues with the listed containers, and then nothing is kept.
func TestForgottenTerminationContinues(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		synctest.Wait()
		b.Forget(b.pod)
		_, found := b.Termination(b.pod)
		require.False(b, found)
		require.Equal(b, 1, b.Pods())
		result, err := termination.Wait(b.Context())
		require.NoError(b, err)
		require.Len(b, result.Containers, 2)
		b.requireStop("proxy", 7, 3*time.Second)
		synctest.Wait()
		require.Zero(b, b.Pods())
	})
}

// A stop in progress when its pod is forgotten becomes part of the next termination.
func TestTerminationAfterForgetRunsNoHookTwice(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", scriptedExec(), withHookTaking(time.Second, lifecycletest.Script{ExitAfterTerm: 3 * time.Second}))
		first := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		b.sleepUntil(2 * time.Second)
		b.Forget(b.pod)
		second := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		require.NotSame(b, first, second)
		for _, termination := range []*lifecycle.Termination{first, second} {
			result, err := termination.Wait(b.Context())
			require.NoError(b, err)
			require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		}
		require.Len(b, b.rt.Execs(), 1)
		require.Len(b, b.rt.Stops(), 1)
	})
}

// Forget during a start keeps nothing of the pod once the start has returned, and the next termination
// finds the container in the runtime's list.
func TestContainerStartedDuringForgetIsStoppedByTheNextTermination(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addStopped("app")
		started := startCall(func() error {
			return b.startContainer("app", "1", lifecycletest.Script{StartTakes: 2 * time.Second})
		})
		b.Forget(b.pod)
		require.NoError(b, started())
		require.Zero(b, b.Pods())
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
	})
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

// Asking for an unknown pod must not create an entry for it, which would never be freed.
func TestTerminationLookupKeepsNothing(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		_, found := b.Termination(b.pod)
		require.False(b, found)
		b.Forget(b.pod)
		require.Zero(b, b.Pods())
	})
}
