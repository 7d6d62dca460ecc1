package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/metrics"
)

// The methods of a handle are called, and the registry has the series with their values. The kubelet's series keep
// their names and help texts. Two unknown outcomes count together as "other", and times are rounded down to seconds.
func TestShutdownSeries(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m, err := metrics.NewShutdown(reg, metrics.Options{})
	require.NoError(t, err)
	m.Times(time.Unix(100, 999), time.Unix(130, 0))
	m.Inhibitor(true)
	m.Delay(32*time.Second, 30*time.Second)
	m.PodKilled("Graceful")
	m.PodKilled("Graceful")
	m.PodKilled("pod-1 was hit by a truck")
	m.PodKilled("pod-2 was hit by a truck")
	m.PodsRefused(1)
	m.Bucket(3 * time.Second)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP kubelet_graceful_shutdown_bucket_duration_seconds Duration of the buckets of graceful shutdowns in seconds, without empty buckets
# TYPE kubelet_graceful_shutdown_bucket_duration_seconds histogram
kubelet_graceful_shutdown_bucket_duration_seconds_bucket{le="0.1"} 0
kubelet_graceful_shutdown_bucket_duration_seconds_bucket{le="0.5"} 0
kubelet_graceful_shutdown_bucket_duration_seconds_bucket{le="1"} 0
kubelet_graceful_shutdown_bucket_duration_seconds_bucket{le="2"} 0
kubelet_graceful_shutdown_bucket_duration_seconds_bucket{le="5"} 1
kubelet_graceful_shutdown_bucket_duration_seconds_bucket{le="10"} 1
kubelet_graceful_shutdown_bucket_duration_seconds_bucket{le="20"} 1
kubelet_graceful_shutdown_bucket_duration_seconds_bucket{le="30"} 1
kubelet_graceful_shutdown_bucket_duration_seconds_bucket{le="60"} 1
kubelet_graceful_shutdown_bucket_duration_seconds_bucket{le="120"} 1
kubelet_graceful_shutdown_bucket_duration_seconds_bucket{le="300"} 1
kubelet_graceful_shutdown_bucket_duration_seconds_bucket{le="600"} 1
kubelet_graceful_shutdown_bucket_duration_seconds_bucket{le="+Inf"} 1
kubelet_graceful_shutdown_bucket_duration_seconds_sum 3
kubelet_graceful_shutdown_bucket_duration_seconds_count 1
# HELP kubelet_graceful_shutdown_delay_seconds Delay of the host's shutdown in seconds, as requested and as granted
# TYPE kubelet_graceful_shutdown_delay_seconds gauge
kubelet_graceful_shutdown_delay_seconds{kind="granted"} 30
kubelet_graceful_shutdown_delay_seconds{kind="requested"} 32
# HELP kubelet_graceful_shutdown_end_time_seconds [ALPHA] Last graceful shutdown end time since unix epoch in seconds
# TYPE kubelet_graceful_shutdown_end_time_seconds gauge
kubelet_graceful_shutdown_end_time_seconds 130
# HELP kubelet_graceful_shutdown_inhibitor_held Whether the inhibitor lock is held (1) or not (0)
# TYPE kubelet_graceful_shutdown_inhibitor_held gauge
kubelet_graceful_shutdown_inhibitor_held 1
# HELP kubelet_graceful_shutdown_pods_refused_total Pods that were not admitted because the node was shutting down
# TYPE kubelet_graceful_shutdown_pods_refused_total counter
kubelet_graceful_shutdown_pods_refused_total 1
# HELP kubelet_graceful_shutdown_pods_total Pods killed by graceful shutdowns, by outcome
# TYPE kubelet_graceful_shutdown_pods_total counter
kubelet_graceful_shutdown_pods_total{outcome="Graceful"} 2
kubelet_graceful_shutdown_pods_total{outcome="other"} 2
# HELP kubelet_graceful_shutdown_start_time_seconds [ALPHA] Last graceful shutdown start time since unix epoch in seconds
# TYPE kubelet_graceful_shutdown_start_time_seconds gauge
kubelet_graceful_shutdown_start_time_seconds 100
`)))
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// The end time is 0 while the shutdown is in progress. If the clock was set back, it is the start time: an end is never
// before the start.
func TestShutdownTimes(t *testing.T) {
	for _, test := range []struct {
		name       string
		start, end time.Time
		wantEnd    float64 // the end time in the metrics
	}{
		{name: "in progress", start: time.Unix(100, 0), wantEnd: 0},
		{name: "ended", start: time.Unix(100, 0), end: time.Unix(101, 0), wantEnd: 101},
		{name: "the clock was set back", start: time.Unix(100, 0), end: time.Unix(50, 0), wantEnd: 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			reg := prometheus.NewPedanticRegistry()
			m, err := metrics.NewShutdown(reg, metrics.Options{Namespace: "agent"})
			require.NoError(t, err)
			m.Times(test.start, test.end)
			require.Equal(t, 100.0, gaugeValue(t, reg, "agent_graceful_shutdown_start_time_seconds"))
			require.Equal(t, test.wantEnd, gaugeValue(t, reg, "agent_graceful_shutdown_end_time_seconds"))
		})
	}
}

// gaugeValue returns the value of a gauge without labels.
func gaugeValue(t *testing.T, reg prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("%s was not found", name)
	return 0
}
