//go:build go1.25

package lifecycle_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// killAllInPlace kills containers and waits for their ends, as RestartAllContainers does: in parallel, without
// order, hooks or grace period.
func (b *testBed) killAllInPlace(names ...string) {
	var kills sync.WaitGroup
	for _, name := range names {
		kills.Go(func() {
			result, err := b.KillContainer(b.Context(), b.pod, containerNamed(name),
				lifecycle.ContainerRequest{GracePeriodSeconds: ptr.To(int64(0))})
			require.NoError(b, err)
			require.Equal(b, lifecycle.HookSkipped, result.Hook.Outcome)
		})
	}
	kills.Wait()
}

// RestartAllContainers (KEP-5532): the containers are killed in place, which takes 2 s, and started again. The
// termination that follows runs the hooks of the new containers, and gives them the whole grace period in the
// usual order.
func TestRestartAllContainers(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		stubborn := lifecycletest.Script{IgnoreTerm: true}
		b.addSidecar("proxy", scriptedExec(), stubborn)
		b.addMain("app", scriptedExec(), stubborn)
		b.killAllInPlace("proxy", "app")
		require.Equal(b, 2*time.Second, b.elapsed(), "the minimum of the kubelet's killContainer, not 60 s")
		require.Empty(b, b.rt.Execs())

		require.NoError(b, b.startContainer("proxy", "proxy-2", lifecycletest.Script{ExitAfterTerm: time.Second}))
		require.NoError(b, b.startContainer("app", "app-2", lifecycletest.Script{ExitAfterTerm: 10 * time.Second}))
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
		require.Len(b, b.rt.Execs(), 2, "each new one has its hook")
		b.requireFirstStop("app-2", 60, 2*time.Second)
		b.requireFirstStop("proxy-2", 60-10, (2+10)*time.Second) // after the 10 s of app-2
	})
}

// A pod is deleted 1 s after RestartAllContainers began to kill its containers. The termination waits for these
// kills, which have 2 s, and not for the 60 s of the pod. Nothing is started again.
func TestDeletionDuringRestartAllContainers(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		stubborn := lifecycletest.Script{IgnoreTerm: true}
		b.addSidecar("proxy", scriptedExec(), stubborn)
		b.addMain("app", scriptedExec(), stubborn)
		var killing sync.WaitGroup
		killing.Go(func() { b.killAllInPlace("proxy", "app") })
		<-time.After(time.Second)
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		killing.Wait()
		require.NoError(b, err)
		require.Equal(b, 2*time.Second, b.elapsed())
		require.Len(b, result.Containers, 2)
		require.Empty(b, b.rt.Execs())
		require.ErrorIs(b, b.startContainer("app", "app-2", stubborn), lifecycle.ErrTerminating)
		require.ErrorIs(b, b.startContainer("proxy", "proxy-2", stubborn), lifecycle.ErrTerminating)
	})
}
