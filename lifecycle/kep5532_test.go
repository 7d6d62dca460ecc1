//go:build go1.25

package lifecycle_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// hooked is a preStop hook that drains.
func hooked() *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"drain"}}}
}

// killAll kills all containers of the pod in place, as RestartAllContainers does: at the same
// time, in no order, without hooks and without the pod's grace period.
func (b *bed) killAll(ids ...string) {
	var kills sync.WaitGroup
	for name, id := range map[string]string{"proxy": ids[0], "app": ids[1]} {
		kills.Go(func() {
			result, err := b.Pod(b.pod).KillContainer(b.Context(), lifecycle.Container{Name: name, ID: id},
				lifecycle.ContainerRequest{GracePeriodSeconds: ptr.To(int64(0))})
			require.NoError(b, err)
			require.Equal(b, lifecycle.HookSkipped, result.Hook.Outcome)
		})
	}
	kills.Wait()
}

// startAgain starts a container of the pod again.
func (b *bed) startAgain(name, id string, script lifecycletest.Script) error {
	return b.Start(b.Context(), b.pod, name, func(context.Context) (string, error) {
		b.rt.Start(id, script)
		return id, nil
	})
}

// RestartAllContainers (KEP-5532): the containers are killed in place and started again, and the
// real termination has the hooks, the order and the grace period of the new ones.
func TestRestartAllContainers(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		stubborn := lifecycletest.Script{IgnoreTerm: true}
		b.addSidecar("proxy", hooked(), stubborn)
		b.addMain("app", hooked(), stubborn)
		b.killAll("proxy", "app")
		require.Equal(b, 2*time.Second, b.at(), "the floor of the kubelet's killContainer, and not 60 s")
		require.Empty(b, b.rt.Execs())

		require.NoError(b, b.startAgain("proxy", "proxy-2", lifecycletest.Script{ExitAfterTerm: time.Second}))
		require.NoError(b, b.startAgain("app", "app-2", lifecycletest.Script{ExitAfterTerm: 10 * time.Second}))
		result, err := b.Pod(b.pod).Kill(b.Context(), lifecycle.Request{
			Containers: []lifecycle.Container{{Name: "proxy", ID: "proxy-2"}, {Name: "app", ID: "app-2"}}, Complete: true,
		})
		require.NoError(b, err)
		require.Equal(b, lifecycle.Graceful, result.Outcome())
		require.Len(b, b.rt.Execs(), 2, "each new one has its hook")
		b.requireStop("app-2", 60, 2*time.Second)
		b.requireStop("proxy-2", 50, 12*time.Second)
	})
}

// A pod that is deleted in a RestartAllContainers is terminated: what is being killed keeps its
// deadline, and nothing is started again.
func TestADeletionDuringRestartAllContainers(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		stubborn := lifecycletest.Script{IgnoreTerm: true}
		b.addSidecar("proxy", hooked(), stubborn)
		b.addMain("app", hooked(), stubborn)
		var killing sync.WaitGroup
		killing.Go(func() { b.killAll("proxy", "app") })
		<-time.After(time.Second)
		result, err := b.Pod(b.pod).Kill(b.Context(), lifecycle.Request{})
		killing.Wait()
		require.NoError(b, err)
		require.Equal(b, 2*time.Second, b.at())
		require.Len(b, result.Containers, 2)
		require.Empty(b, b.rt.Execs())
		require.ErrorIs(b, b.startAgain("app", "app-2", stubborn), lifecycle.ErrTerminating)
		require.ErrorIs(b, b.startAgain("proxy", "proxy-2", stubborn), lifecycle.ErrTerminating)
	})
}
