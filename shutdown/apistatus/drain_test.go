//go:build go1.25

package apistatus_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// fullNode returns n pods, one in five critical, whose grace periods exceed the shutdown's.
func fullNode(n int) []*v1.Pod {
	var pods []*v1.Pod
	for i := range n {
		priority := int32(0)
		if i%5 == 0 {
			priority = critical
		}
		pods = append(pods, workload(fmt.Sprintf("pod-%03d", i), priority, 60))
	}
	return pods
}

// showsShutdown reports whether the node has the conditions of a shutdown.
func showsShutdown(node *v1.Node) bool {
	all := conditionTexts(node.Status.Conditions)
	return len(all) == 2 && all[0] == notReady && all[1].Status == v1.ConditionTrue
}

// 110 pods use all their grace period. Each request takes 20 ms, and the first three patches fail with a conflict. When a pod is
// killed, the node already has the conditions of a shutdown. When the inhibitor lock is released, the API server has all final
// statuses, and the shutdown has taken at most the planned time.
func TestANodeIsReportedBeforeTheKillsAndItsPodsBeforeTheRelease(t *testing.T) {
	pods := fullNode(110)
	inBubble(t, pods, func(t *testing.T, c *cluster, a *agent) {
		conflicts := failFirst(3, "patch status", statusError(http.StatusConflict))
		c.fault = func(ctx context.Context, call call) error {
			<-time.After(20 * time.Millisecond)
			return conflicts(ctx, call)
		}
		a.killer.OnKill = func(pod *v1.Pod) { assert.True(t, showsShutdown(c.node(t)), pod.Name) }
		a.killer.Default = shutdowntest.Behaviour{Takes: time.Hour} // longer than any grace period
		a.run()
		defer a.end()

		began := time.Now()
		report := a.shutDown(source.KindPoweroff)
		require.Empty(t, report.Errors)
		require.Empty(t, unflushedNames(report))
		released, _ := a.host.Released()
		require.LessOrEqual(t, released.Sub(began), 36*time.Second, "30 s for the pods, 2 s for publishing, and in each of the two buckets 1 s for readiness marks and 1 s for statuses")
		for _, call := range c.callsOf(anyVerb) {
			require.True(t, call.At.Before(released))
		}
		for _, pod := range pods {
			require.Equal(t, v1.PodFailed, c.pod(t, pod.Name).Status.Phase)
		}
	})
}

// A node with 20 pods, which end after 1 s, is shut down in real time, with a real API server behind a proxy. OnKill checks that the
// node has the conditions of a shutdown. OnRelease, which is called right before the release of the lock, finds the final
// statuses of all pods on the server.
func TestANodeIsReportedBeforeTheKillsAndItsPodsBeforeTheReleaseOverTCP(t *testing.T) {
	pods := fullNode(20)
	server, r := serve(t, nodeOf(ready))
	for _, pod := range pods {
		server.create(pod)
	}
	server.Script(apiserverproxy.Always(apiserverproxy.Fault{Delay: time.Millisecond})) // each request takes 1 ms longer
	a := newAgent(t, r, pods...)
	a.opts.Config = plan.Config{
		ShutdownGracePeriod:             metav1.Duration{Duration: 4 * time.Second},
		ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: 2 * time.Second},
	}
	a.opts.Plan.PublishTimeout, a.opts.Plan.StatusesTimeout = time.Minute, time.Minute // for a busy machine
	a.killer.OnKill = func(pod *v1.Pod) { assert.True(t, showsShutdown(server.node()), pod.Name) }
	a.killer.Default = shutdowntest.Behaviour{Takes: time.Second}
	atRelease := 0
	a.opts.OnRelease = func(context.Context) { atRelease = server.finalStatusCount() }
	a.run()
	defer a.end()
	require.Empty(t, unflushedNames(a.shutDown(source.KindPoweroff)))
	require.Equal(t, 20, atRelease)
}

// The API server dies when the pod web is killed, so the lock is released before the server has web's final status. After a reboot the
// next agent, which finds no pods on the node, sends the status: it has it from the state log in StateDir.
func TestTheNextAgentSendsAFinalStatus(t *testing.T) {
	web := workload("web", 0, 1)
	server, r := serve(t, nodeOf(ready), web)
	a := newAgent(t, r, web)
	a.opts.StateDir = t.TempDir()
	a.killer.OnKill = func(*v1.Pod) { server.Die() }
	a.run()
	require.Equal(t, []string{"web"}, unflushedNames(a.shutDown(source.KindPoweroff)))
	a.end()

	// The API server comes back, and another agent starts after a reboot.
	require.NoError(t, server.Revive())
	require.Zero(t, server.finalStatusCount())

	a.host.SetPending(nil)
	a.pods = nil // the pod is gone from the node
	a.run()
	defer a.end()
	require.Eventually(t, func() bool { return server.finalStatusCount() == 1 }, time.Minute, 10*time.Millisecond)
}
