//go:build go1.25

package shutdown_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The metrics show the times of the newest shutdown, which waits for a pod of a cancelled one, listed or
// not.
func TestTimesOfTheNewestShutdown(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("slow", 0, 20)), func(t *testing.T, n *node) {
		registry := prometheus.NewRegistry()
		shown, err := metrics.NewShutdown(registry, metrics.Options{})
		require.NoError(t, err)
		n.opts.Metrics = shown
		n.killer.Pods = map[string]shutdowntest.Behaviour{"slow": {Takes: 15 * time.Second}}
		n.run()
		n.announce()
		n.advance(time.Second)
		n.host.Cancel()
		n.advance(time.Second)
		n.setPods(shutdowntest.Pod("quick", 0, 5))
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, float64(began.Unix()), gauge(t, registry, "kubelet_graceful_shutdown_start_time_seconds"))
		require.Equal(t, float64(began.Unix()+13), gauge(t, registry, "kubelet_graceful_shutdown_end_time_seconds"))
	})
}

func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no %s", name)
	return 0
}
