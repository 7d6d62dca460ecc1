//go:build go1.25

package shutdown_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// On the next boot an agent reads the stored report, shows the times of the shutdown in its
// metrics, and reverts the node state. It admits pods.
func TestNextBoot(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		began := time.Now()
		n.advance(time.Second)
		n.announce()
		n.advance(time.Minute)
		before := n.lastReport()
		n.end()

		n.host.SetPending(nil)
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		reg := prometheus.NewPedanticRegistry()
		m, err := metrics.NewShutdown(reg, metrics.Options{})
		require.NoError(t, err)
		n.opts.Metrics = m
		n.runOnBoot(&boot{id: "two", began: time.Now()})
		require.True(t, n.m.Admit(nil).Admit)
		require.Equal(t, float64(began.Unix()+1), metricValue(t, reg, "kubelet_graceful_shutdown_start_time_seconds"))
		require.Equal(t, float64(began.Unix()+1), metricValue(t, reg, "kubelet_graceful_shutdown_end_time_seconds"))
		require.Len(t, reporter.Published(), 1)
		require.False(t, reporter.Published()[0].State.ShuttingDown)
		require.JSONEq(t, asJSON(t, before), asJSON(t, n.lastReport()))
	})
}

// The agent of the next boot reports a shutdown that never ended, and does not resume it.
func TestUnfinishedInAnotherBoot(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		n.announce()
		n.advance(22 * time.Second)
		n.crash()
		n.host.SetPending(nil)
		n.runOnBoot(&boot{id: "two", began: time.Now()})
		require.True(t, n.m.Admit(nil).Admit)
		require.Empty(t, n.killer.Kills())
		require.Zero(t, n.lastReport().Ended)
		require.Len(t, n.lastReport().Pods, 2, "the pods that were signalled before the last write")
	})
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}
