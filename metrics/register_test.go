//go:build go1.25

package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	kubemetrics "k8s.io/component-base/metrics"

	"github.com/kubegrace/kubegrace/metrics"
)

// constructors returns the New function of each handle.
func constructors() map[string]func(prometheus.Registerer, metrics.Options) error {
	return map[string]func(prometheus.Registerer, metrics.Options) error{
		"lifecycle": func(reg prometheus.Registerer, opts metrics.Options) error {
			_, err := metrics.NewLifecycle(reg, opts)
			return err
		},
		"shutdown": func(reg prometheus.Registerer, opts metrics.Options) error {
			_, err := metrics.NewShutdown(reg, opts)
			return err
		},
	}
}

// Two pairs of handles in one registry share all series. Each method is called once for each pair, so counters are 2,
// and gauges have the last value.
func TestSeriesAreShared(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	for range 2 {
		pods, err := metrics.NewLifecycle(reg, metrics.Options{})
		require.NoError(t, err)
		callEachMethod(pods)
		node, err := metrics.NewShutdown(reg, metrics.Options{})
		require.NoError(t, err)
		node.Times(time.Unix(100, 0), time.Time{})
		node.Inhibitor(true)
		node.Delay(32*time.Second, 30*time.Second)
		node.Bucket(time.Second)
		node.PodKilled("Graceful")
		node.PodsRefused(1)
	}
	values := map[string]float64{}
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, family := range families {
		m := family.GetMetric()[0] // a counter, a gauge or a histogram: the others of the three have 0
		values[family.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	require.Equal(t, map[string]float64{
		"kubelet_lifecycle_handler_http_fallbacks_total":      2,
		"kubelet_sleep_action_terminated_early_total":         2,
		"kubelet_sleep_action_ended_by_container_exit_total":  2,
		"kubelet_prestop_hooks_abandoned_total":               2,
		"kubelet_prestop_hook_duration_seconds":               2,
		"kubelet_pod_termination_duration_seconds":            2,
		"kubelet_containers_killed_after_grace_total":         2,
		"kubelet_pod_termination_grace_period_exceeded_total": 2,
		"kubelet_pod_stop_signals_count":                      3, // set, not added
		"kubelet_graceful_shutdown_start_time_seconds":        100,
		"kubelet_graceful_shutdown_end_time_seconds":          0,
		"kubelet_graceful_shutdown_inhibitor_held":            1,
		"kubelet_graceful_shutdown_delay_seconds":             30, // of its two labels, granted comes first
		"kubelet_graceful_shutdown_bucket_duration_seconds":   2,
		"kubelet_graceful_shutdown_pods_total":                2,
		"kubelet_graceful_shutdown_pods_refused_total":        2,
	}, values)
}

// The registry is that of a kubelet, which has registered four of the series that the handles have too. The handles are made
// without an error, and count in the kubelet's series.
func TestSeriesOfAKubeletAreShared(t *testing.T) {
	kubelet := kubemetrics.NewKubeRegistry()
	gauge := func(name, help string) *kubemetrics.Gauge {
		return kubemetrics.NewGauge(&kubemetrics.GaugeOpts{Subsystem: "kubelet", Name: name, Help: help, StabilityLevel: kubemetrics.ALPHA})
	}
	counter := func(name, help string) *kubemetrics.Counter {
		return kubemetrics.NewCounter(&kubemetrics.CounterOpts{Subsystem: "kubelet", Name: name, Help: help, StabilityLevel: kubemetrics.ALPHA})
	}
	kubelet.MustRegister(
		gauge("graceful_shutdown_start_time_seconds", "Last graceful shutdown start time since unix epoch in seconds"),
		gauge("graceful_shutdown_end_time_seconds", "Last graceful shutdown end time since unix epoch in seconds"),
		counter("lifecycle_handler_http_fallbacks_total", "The number of times lifecycle handlers successfully fell back to http from https."),
		counter("sleep_action_terminated_early_total", "The number of times lifecycle sleep handler got terminated before it finishes"),
	)
	node, err := metrics.NewShutdown(kubelet.Registerer(), metrics.Options{})
	require.NoError(t, err)
	pods, err := metrics.NewLifecycle(kubelet.Registerer(), metrics.Options{})
	require.NoError(t, err)
	node.Times(time.Unix(100, 0), time.Unix(130, 0))
	pods.HTTPFallback()
	pods.SleepTerminatedEarly()
	require.NoError(t, testutil.GatherAndCompare(kubelet, strings.NewReader(`
# HELP kubelet_graceful_shutdown_end_time_seconds [ALPHA] Last graceful shutdown end time since unix epoch in seconds
# TYPE kubelet_graceful_shutdown_end_time_seconds gauge
kubelet_graceful_shutdown_end_time_seconds 130
# HELP kubelet_graceful_shutdown_start_time_seconds [ALPHA] Last graceful shutdown start time since unix epoch in seconds
# TYPE kubelet_graceful_shutdown_start_time_seconds gauge
kubelet_graceful_shutdown_start_time_seconds 100
# HELP kubelet_lifecycle_handler_http_fallbacks_total [ALPHA] The number of times lifecycle handlers successfully fell back to http from https.
# TYPE kubelet_lifecycle_handler_http_fallbacks_total counter
kubelet_lifecycle_handler_http_fallbacks_total 1
# HELP kubelet_sleep_action_terminated_early_total [ALPHA] The number of times lifecycle sleep handler got terminated before it finishes
# TYPE kubelet_sleep_action_terminated_early_total counter
kubelet_sleep_action_terminated_early_total 1
`), "kubelet_graceful_shutdown_end_time_seconds", "kubelet_graceful_shutdown_start_time_seconds",
		"kubelet_lifecycle_handler_http_fallbacks_total", "kubelet_sleep_action_terminated_early_total"))
}

// A gauge is registered with the name and the help text of a counter of NewShutdown. NewShutdown returns an error, and
// registers nothing: only the gauge is left.
func TestSeriesOfAnotherTypeIsAnError(t *testing.T) {
	const name, help = "kubelet_graceful_shutdown_pods_refused_total", "Pods that were not admitted because the node was shutting down"
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return 0 })))
	_, err := metrics.NewShutdown(reg, metrics.Options{})
	require.ErrorContains(t, err, "failed to register metrics: ")
	require.ErrorContains(t, err, name)
	families, err := reg.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
}

// A counter is registered with the name of one of the handle's series, but with another help text. The New function returns
// an error and registers nothing, and the counter stays registered.
func TestOneConflictRegistersNothing(t *testing.T) {
	conflicting := map[string]string{
		"lifecycle": "kubelet_pod_termination_grace_period_exceeded_total",
		"shutdown":  "kubelet_graceful_shutdown_end_time_seconds",
	}
	for name, construct := range constructors() {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewPedanticRegistry()
			theirs := prometheus.NewCounter(prometheus.CounterOpts{Name: conflicting[name], Help: "of a kubelet"})
			require.NoError(t, reg.Register(theirs))

			require.ErrorContains(t, construct(reg, metrics.Options{}), conflicting[name])
			families, err := reg.Gather()
			require.NoError(t, err)
			require.Len(t, families, 1)
			require.Equal(t, conflicting[name], families[0].GetName())
		})
	}
}

// Metrics without a registerer are registered nowhere, so a second NewLifecycle or NewShutdown does not conflict.
func TestANilRegistererIsAllowed(t *testing.T) {
	for _, construct := range constructors() {
		require.NoError(t, construct(nil, metrics.Options{}))
		require.NoError(t, construct(nil, metrics.Options{}))
	}
}
