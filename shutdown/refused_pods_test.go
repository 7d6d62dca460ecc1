//go:build go1.25

package shutdown_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/metrics"
)

// refusedMetric starts an agent with a new registry, calls during, and ends the agent. It
// returns the agent's metric of refused pods.
func (n *node) refusedMetric(b *boot, during func()) float64 {
	n.t.Helper()
	reg := prometheus.NewPedanticRegistry()
	m, err := metrics.NewShutdown(reg, metrics.Options{})
	require.NoError(n.t, err)
	n.opts.Metrics = m
	n.runOnBoot(b)
	during()
	n.end()
	return metricValue(n.t, reg, "kubelet_graceful_shutdown_pods_refused_total")
}

// The counter of refused pods keeps its value after a restart and after a reboot, because a node
// that shuts down is rarely scraped again.
func TestRefusedPodsAreRemembered(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.StateDir = t.TempDir()
		b := &boot{id: "one", began: time.Now()}
		refuse := func() {
			for range 3 {
				require.False(t, n.m.Admit(nil).Admit)
			}
		}
		require.Equal(t, 3.0, n.refusedMetric(b, func() { n.announce(); n.advance(time.Minute); refuse() }))
		require.Equal(t, 6.0, n.refusedMetric(b, refuse), "while the shutdown goes on")
		n.host.SetPending(nil)
		b.id = "two"
		require.Equal(t, 6.0, n.refusedMetric(b, func() { require.True(t, n.m.Admit(nil).Admit) }))
		require.Equal(t, 9.0, n.refusedMetric(b, func() { n.announce(); refuse() }))
		require.Equal(t, 9.0, n.refusedMetric(b, func() {}))
	})
}

// The pods that are refused after the last write of the state file are stored at the end of Run.
func TestPodsRefusedAfterTheDrainAreStored(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Minute)
		before, err := os.ReadFile(filepath.Join(n.opts.StateDir, progressFile))
		require.NoError(t, err)
		require.NotContains(t, string(before), `"refused":1`)
		require.False(t, n.m.Admit(nil).Admit)
		n.end()
		after, err := os.ReadFile(filepath.Join(n.opts.StateDir, progressFile))
		require.NoError(t, err)
		require.Contains(t, string(after), `"refused":1`)
	})
}
