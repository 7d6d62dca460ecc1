package kubegrace

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	kubeletmetrics "k8s.io/kubernetes/pkg/kubelet/metrics"
)

// The kubelet registers its own series after its managers were made, which panics where they
// stand already. What was counted in them is then shown.
func TestKubeletRegistersItsSeriesLater(t *testing.T) {
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
		if name, own := strings.CutPrefix(family.GetName(), "kubelet_"); own {
			metric := family.GetMetric()[0]
			values[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	require.Subset(t, values, map[string]float64{
		"graceful_shutdown_start_time_seconds": 100, "graceful_shutdown_end_time_seconds": 160,
		"sleep_action_terminated_early_total": 1, "lifecycle_handler_http_fallbacks_total": 0,
	})
	require.Contains(t, values, "graceful_shutdown_inhibitor_held")
	require.NotNil(t, ShutdownMetrics(klog.Background()), "each call shares the series")
}
