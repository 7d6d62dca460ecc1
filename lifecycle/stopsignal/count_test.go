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

// countedPods returns two pods. The first has containers of each kind, one of which has ended; the second has only web.
func countedPods() []*v1.Pod {
	return []*v1.Pod{
		{
			Spec: v1.PodSpec{Containers: []v1.Container{containerWithSignal("web", v1.SIGUSR1), containerWithSignal("ended", v1.SIGUSR2)}},
			Status: v1.PodStatus{
				ContainerStatuses:          []v1.ContainerStatus{runningStatus("web", ""), runningStatus("log", ""), {Name: "ended"}},
				InitContainerStatuses:      []v1.ContainerStatus{runningStatus("proxy", v1.SIGQUIT)},
				EphemeralContainerStatuses: []v1.ContainerStatus{runningStatus("debug", "")},
			},
		},
		{Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{runningStatus("web", v1.SIGQUIT)}}},
	}
}

// The pods of countedPods have two containers with SIGQUIT in their status, one with SIGUSR1 in its spec, and two without a
// signal, which count as SIGTERM. The container that has ended does not count, and a nil pod is ignored. The metric
// kubelet_pod_stop_signals_count shows the counts.
func TestCountFillsTheMetric(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	handle, err := metrics.NewLifecycle(registry, metrics.Options{})
	require.NoError(t, err)
	handle.StopSignals(stopsignal.Count(append(countedPods(), nil)...))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP kubelet_pod_stop_signals_count The number of containers by the signal they are stopped with.
# TYPE kubelet_pod_stop_signals_count gauge
kubelet_pod_stop_signals_count{signal="SIGQUIT"} 2
kubelet_pod_stop_signals_count{signal="SIGTERM"} 2
kubelet_pod_stop_signals_count{signal="SIGUSR1"} 1
`), "kubelet_pod_stop_signals_count"))
}
