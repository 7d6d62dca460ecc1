//go:build go1.25

package apistatus_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/apistatus"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A shutdown is cancelled 5 s after it began, while the pod of the lowest bucket is being stopped. The node's conditions
// are reset within a second. The signalled pod still ends; the critical pod was not signalled and is ready. The agent ends
// in another shutdown. The next one finds no shutdown pending, and resets the conditions, although it does not have the
// feature DaemonSetGracefulNodeShutdown that has set one of them.
func TestACancellationAndARestartResetTheNodeConditions(t *testing.T) {
	poweringOff := []conditionText{notReady, {inProgress, v1.ConditionTrue, "NodeShutdown", shutdownMessage + ": poweroff"}, drains}
	pods := []*v1.Pod{workload("web", 0, 60), workload("etcd", critical, 60)}
	inBubble(t, pods, func(t *testing.T, c *cluster, a *agent) {
		conditions := func() []conditionText { return conditionTexts(c.node(t).Status.Conditions) }
		a.opts.Reporter = c.reporter(t, func(opts *apistatus.Options) { opts.Gates = gate(t, true) })
		a.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		a.run()
		a.host.Announce(source.Event{Kind: source.KindPoweroff})
		advance(5 * time.Second)
		require.Equal(t, poweringOff, conditions())
		a.host.Cancel()
		advance(time.Second)
		require.Equal(t, []conditionText{ready, noShutdown, noDrain}, conditions())
		advance(time.Minute)
		require.Equal(t, v1.PodFailed, c.pod(t, "web").Status.Phase)
		require.Contains(t, conditionSummaries(c.pod(t, "etcd").Status), conditionSummary{v1.PodReady, v1.ConditionTrue, "", 0, false})

		a.host.Announce(source.Event{Kind: source.KindPoweroff})
		advance(5 * time.Second)
		a.interrupt()
		require.Equal(t, poweringOff, conditions(), "an agent that stops resets nothing")
		a.host.SetPending(nil)
		a.opts.Reporter = c.reporter(t)
		a.run()
		advance(5 * time.Second)
		require.Equal(t, []conditionText{ready, noShutdown, noDrain}, conditions())
		a.end()
	})
}
