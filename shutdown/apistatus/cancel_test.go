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

// beginPowerOff runs the agent and shuts the node down. It returns 5 s later, while the pods of the lowest bucket, which take an
// hour to end, are being stopped. It turns on the feature DaemonSetGracefulNodeShutdown, so the node also has the condition
// DrainInProgress.
func beginPowerOff(t *testing.T, c *cluster, a *agent) {
	t.Helper()
	const isOn = true
	a.opts.Reporter = c.reporter(t, func(opts *apistatus.Options) { opts.Gates = gate(t, isOn) })
	a.killer.Default = shutdowntest.Behaviour{Takes: time.Hour} // longer than any grace period
	a.run()
	a.host.Announce(source.Event{Kind: source.KindPoweroff})
	advance(5 * time.Second)
	poweringOff := conditionText{inProgress, v1.ConditionTrue, "NodeShutdown", shutdownMessage + ": poweroff"}
	requireNodeConditions(t, c, notReady, poweringOff, drains)
}

// requireNodeConditions requires that the node has exactly these conditions.
func requireNodeConditions(t *testing.T, c *cluster, want ...conditionText) {
	t.Helper()
	require.Equal(t, want, conditionTexts(c.node(t).Status.Conditions))
}

// A shutdown is cancelled while the pod web of the lowest bucket is being stopped. The node's conditions are reset within
// a second. The pod web is Failed when its grace period is over. The critical pod etcd was not stopped, and has the
// conditions that it had before the shutdown.
func TestACancellationResetsTheNodeConditions(t *testing.T) {
	pods := []*v1.Pod{workload("web", 0, 60), workload("etcd", critical, 60)}
	inBubble(t, pods, func(t *testing.T, c *cluster, a *agent) {
		beginPowerOff(t, c, a)
		defer a.end()
		a.host.Cancel()
		advance(time.Second)
		requireNodeConditions(t, c, ready, noShutdown, noDrain)
		advance(time.Minute)
		require.Equal(t, v1.PodFailed, c.pod(t, "web").Status.Phase)
		require.Equal(t, running("etcd").Status.Conditions, c.pod(t, "etcd").Status.Conditions)
	})
}

// An agent is stopped during a shutdown. The next agent finds no shutdown pending, and resets the node's conditions. It
// resets DrainInProgress too, although it does not have the feature that has set this condition.
func TestTheNextAgentResetsTheNodeConditions(t *testing.T) {
	inBubble(t, []*v1.Pod{workload("web", 0, 60)}, func(t *testing.T, c *cluster, a *agent) {
		beginPowerOff(t, c, a)
		a.interrupt()
		a.host.SetPending(nil) // the shutdown was cancelled while no agent ran
		a.opts.Reporter = c.reporter(t)
		a.run()
		defer a.end()
		advance(5 * time.Second)
		requireNodeConditions(t, c, ready, noShutdown, noDrain)
	})
}
