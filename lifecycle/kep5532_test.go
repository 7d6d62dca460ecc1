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

// killAllInPlace kills all containers in place, as RestartAllContainers does: in parallel, without
// order, hooks or grace period.
func (b *testBed) killAllInPlace(ids ...string) {
	var kills sync.WaitGroup
	for name, id := range map[string]string{"proxy": ids[0], "app": ids[1]} {
		kills.Go(func() {
			result, err := b.KillContainer(b.Context(), b.pod, lifecycle.Container{Name: name, ID: id},
				lifecycle.ContainerRequest{GracePeriodSeconds: ptr.To(int64(0))})
			require.NoError(b, err)
			require.Equal(b, lifecycle.HookSkipped, result.Hook.Outcome)
		})
	}
	kills.Wait()
}

// RestartAllContainers (KEP-5532): the containers are killed in place and started again. The
// termination uses the hooks, the order and the grace period of the new ones.
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
		b.requireStop("app-2", 60, 2*time.Second)
		b.requireStop("proxy-2", 50, 12*time.Second)
	})
}

// A pod deleted during RestartAllContainers is terminated: containers being killed keep their deadline,
// and nothing is started again.
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
