package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/metrics"
)

// only is a gate with one feature off.
type off featuregate.Feature

func (o off) Enabled(key featuregate.Feature) bool { return key != featuregate.Feature(o) }

func TestStopSignal(t *testing.T) {
	usr1 := &v1.Container{Lifecycle: &v1.Lifecycle{StopSignal: ptr.To(v1.SIGUSR1)}}
	on, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycletest.NewRuntime()})
	require.NoError(t, err)
	without, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: lifecycletest.NewRuntime(), Gates: off(lifecycle.ContainerStopSignals),
	})
	require.NoError(t, err)
	for _, test := range []struct {
		container     *v1.Container
		image         string
		want, gateOff v1.Signal
	}{
		{usr1, "SIGQUIT", v1.SIGUSR1, v1.SIGQUIT},
		{usr1, "", v1.SIGUSR1, v1.SIGTERM},
		{&v1.Container{}, "SIGQUIT", v1.SIGQUIT, v1.SIGQUIT},
		{&v1.Container{Lifecycle: &v1.Lifecycle{}}, " quit ", v1.SIGQUIT, v1.SIGQUIT},
		{nil, "RTMIN+3", v1.SIGRTMINPLUS3, v1.SIGRTMINPLUS3},
		{nil, "9", "9", "9"},
		{nil, "", v1.SIGTERM, v1.SIGTERM},
	} {
		require.Equal(t, test.want, on.StopSignal(test.container, test.image))
		require.Equal(t, test.gateOff, without.StopSignal(test.container, test.image))
	}
}

func TestCountStopSignals(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	handle, err := metrics.NewLifecycle(registry, metrics.Options{})
	require.NoError(t, err)
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycletest.NewRuntime(), Metrics: handle})
	require.NoError(t, err)
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	terminator.CountStopSignals([]*v1.Pod{{
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "spec", Lifecycle: &v1.Lifecycle{StopSignal: ptr.To(v1.SIGUSR1)}}}},
		Status: v1.PodStatus{
			ContainerStatuses:          []v1.ContainerStatus{{Name: "spec", State: running}, {Name: "none", State: running}, {Name: "ended"}},
			InitContainerStatuses:      []v1.ContainerStatus{{Name: "status", State: running, StopSignal: ptr.To(v1.SIGQUIT)}},
			EphemeralContainerStatuses: []v1.ContainerStatus{{Name: "none", State: running}},
		},
	}})
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP kubelet_pod_stop_signals_count The number of containers by the signal they are stopped with.
# TYPE kubelet_pod_stop_signals_count gauge
kubelet_pod_stop_signals_count{signal="SIGQUIT"} 1
kubelet_pod_stop_signals_count{signal="SIGTERM"} 2
kubelet_pod_stop_signals_count{signal="SIGUSR1"} 1
`), "kubelet_pod_stop_signals_count"))
}
