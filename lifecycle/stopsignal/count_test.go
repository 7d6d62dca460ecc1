package stopsignal_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/stopsignal"
	"github.com/kubegrace/kubegrace/metrics"
)

// Count counts the running containers of all pods by their stop signals: that of the status, or else of the spec, or else
// SIGTERM. It ignores a nil pod. The metric kubelet_pod_stop_signals_count shows the counts.
func TestCountFillsTheMetric(t *testing.T) {
	shop := &v1.Pod{
		Spec: v1.PodSpec{Containers: []v1.Container{containerWithSignal("web", v1.SIGUSR1), containerWithSignal("ended", v1.SIGUSR2)}},
		Status: v1.PodStatus{
			ContainerStatuses:          []v1.ContainerStatus{runningStatus("web", ""), runningStatus("log", ""), {Name: "ended"}},
			InitContainerStatuses:      []v1.ContainerStatus{runningStatus("proxy", v1.SIGQUIT)},
			EphemeralContainerStatuses: []v1.ContainerStatus{runningStatus("debug", "")},
		},
	}
	cache := &v1.Pod{Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{runningStatus("cache", v1.SIGQUIT)}}}
	registry := prometheus.NewPedanticRegistry()
	handle, err := metrics.NewLifecycle(registry, metrics.Options{})
	require.NoError(t, err)
	handle.StopSignals(stopsignal.Count(shop, cache, nil))
	// SIGQUIT: proxy and cache. SIGTERM: log and debug. SIGUSR1: web.
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP kubelet_pod_stop_signals_count The number of containers by the signal they are stopped with.
# TYPE kubelet_pod_stop_signals_count gauge
kubelet_pod_stop_signals_count{signal="SIGQUIT"} 2
kubelet_pod_stop_signals_count{signal="SIGTERM"} 2
kubelet_pod_stop_signals_count{signal="SIGUSR1"} 1
`), "kubelet_pod_stop_signals_count"))
}
