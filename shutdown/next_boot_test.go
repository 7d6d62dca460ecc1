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

// On the next boot an agent returns the stored report, exports the times of the shutdown, reverts the node
// state, and admits pods.
func TestTheAgentOfTheNextBootShowsTheStoredReport(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.runOnBoot(one)
		began := time.Now()
		n.advance(time.Second)
		n.announce()
		n.advance(time.Minute)
		before := n.lastReport()
		n.end()

		n.host.SetPending(nil)
		reg := prometheus.NewPedanticRegistry()
		m, err := metrics.NewShutdown(reg, metrics.Options{})
		require.NoError(t, err)
		n.opts.Metrics = m
		n.runOnBoot(&boot{id: "two", began: time.Now()})
		require.True(t, n.m.Admit(nil).Admit)
		require.Equal(t, float64(began.Unix()+1), metricValue(t, reg, "kubelet_graceful_shutdown_start_time_seconds"))
		require.Equal(t, float64(began.Unix()+1), metricValue(t, reg, "kubelet_graceful_shutdown_end_time_seconds"))
		published := reporter.Published()
		require.False(t, published[len(published)-1].State.ShuttingDown)
		require.JSONEq(t, asJSON(t, before), asJSON(t, n.lastReport()))
	})
}

// asJSON encodes a value, so that it equals one that was stored and has no monotonic times.
func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}
