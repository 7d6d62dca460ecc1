package kubegrace

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	kubeletmetrics "k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/kubegrace/kubegrace/metrics"
)

// disabledSeries is the series that the tests disable, as with --disabled-metrics.
const disabledSeries = "kubelet_containers_killed_after_grace_total"

// TestMain disables a series before any is created, as a kubelet does for --disabled-metrics.
func TestMain(m *testing.M) {
	disableSeries(disabledSeries)
	m.Run()
}

// description is what a registry exposes about a series.
type description struct {
	help, labels string
	kind         string // such as COUNTER
	bounds       int    // how many buckets a histogram has
}

// describe uses each series once and returns what a registry exposes.
func describe(t *testing.T, pods *metrics.Lifecycle, node *metrics.Shutdown, registry prometheus.Gatherer) map[string]description {
	t.Helper()
	pods.HookEnded("sleep", "Abandoned", time.Second)
	pods.PodTerminated("Graceful", time.Second)
	pods.ContainerKilledAfterGrace()
	pods.PodGraceExceeded()
	node.Delay(time.Second, time.Second)
	node.PodKilled("Graceful")
	node.Bucket(time.Second)
	families, err := registry.Gather()
	require.NoError(t, err)
	all := map[string]description{}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "kubelet_") {
			continue
		}
		metric := family.GetMetric()[0]
		d := description{help: strings.TrimPrefix(family.GetHelp(), "[ALPHA] "), kind: family.GetType().String(), bounds: len(metric.GetHistogram().GetBucket())}
		for _, label := range metric.GetLabel() {
			d.labels += label.GetName() + " "
		}
		all[family.GetName()] = d
	}
	return all
}

// The fork declares each series of kubegrace that a kubelet uses. It has kubegrace's help, labels and buckets, and the
// stability ALPHA. A disabled series is not exposed.
func TestEachSeriesIsDeclared(t *testing.T) {
	own := prometheus.NewRegistry()
	pods, err := metrics.NewLifecycle(own, metrics.Options{})
	require.NoError(t, err)
	node, err := metrics.NewShutdown(own, metrics.Options{})
	require.NoError(t, err)
	want := describe(t, pods, node, own) // with kubegrace's own series
	got := describe(t, LifecycleMetrics(klog.Background()), ShutdownMetrics(klog.Background()), legacyregistry.DefaultGatherer)
	for _, name := range []string{disabledSeries, "kubelet_sleep_action_ended_by_container_exit_total"} { // the second needs an ExitWatcher
		require.Contains(t, want, name)
		delete(want, name)
	}
	for _, name := range []string{ // the kubelet declares and registers these
		"kubelet_graceful_shutdown_start_time_seconds", "kubelet_graceful_shutdown_end_time_seconds",
		"kubelet_lifecycle_handler_http_fallbacks_total", "kubelet_sleep_action_terminated_early_total",
	} {
		require.Contains(t, want, name)
		delete(want, name)
		delete(got, name) // another test may have registered it
	}
	require.Equal(t, want, got)
	require.Len(t, got, 9, "the ten series that the fork declares, without the disabled one")
	families, err := legacyregistry.DefaultGatherer.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "kubelet_") {
			require.Contains(t, family.GetHelp(), "[ALPHA] ", family.GetName())
		}
	}
}

// The kubelet registers its own series after it has created its managers. The registration would panic if kubegrace had
// registered these series, so kubegrace only sets their values.
func TestTheKubeletCanRegisterItsSeriesLater(t *testing.T) {
	node, pods := ShutdownMetrics(klog.Background()), LifecycleMetrics(klog.Background())
	require.NotNil(t, node)
	require.NotNil(t, pods)
	kubeletmetrics.Register()
	node.Times(time.Unix(100, 0), time.Unix(160, 0))
	pods.SleepTerminatedEarly()
	families, err := legacyregistry.DefaultGatherer.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, family := range families {
		if name, isKubelets := strings.CutPrefix(family.GetName(), "kubelet_"); isKubelets {
			metric := family.GetMetric()[0]
			values[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue() // it is one of the two: the other is 0
		}
	}
	require.Subset(t, values, map[string]float64{
		"graceful_shutdown_start_time_seconds": 100, "graceful_shutdown_end_time_seconds": 160,
		"sleep_action_terminated_early_total": 1, "lifecycle_handler_http_fallbacks_total": 0,
	})
	require.Contains(t, values, "graceful_shutdown_inhibitor_held")
	require.NotNil(t, ShutdownMetrics(klog.Background()), "a second call, when the series are registered")
}
