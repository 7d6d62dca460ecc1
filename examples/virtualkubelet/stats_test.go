//go:build linux

package main

import (
	"cmp"
	"context"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

var _ nodeutil.Provider = (*measuredProvider)(nil)

// sleepRuntime runs "sleep" for containers that have no command, as the containers of the suite.
type sleepRuntime struct{ *processes }

func (r sleepRuntime) StartContainer(ctx context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	c = c.DeepCopy()
	if len(c.Command) == 0 {
		c.Command = []string{"sleep", "3600"}
	}
	return r.processes.StartContainer(ctx, pod, c)
}

// measuredProvider adds stats and metrics, which the suite asks for, to the provider of the
// program. They are the CPU times that /proc shows for the processes.
type measuredProvider struct {
	withoutStreams

	runtime *processes
}

// newMeasuredProvider returns a provider for containers, or for whole pods.
func newMeasuredProvider(t *testing.T, whole bool) *measuredProvider {
	t.Helper()
	runtime := &processes{}
	opts := virtualkubelet.Options{
		Runtime: sleepRuntime{runtime},
		Status:  func(pod *v1.Pod) { pod.Status.HostIP, pod.Status.PodIP = "127.0.0.1", "127.0.0.1" },
	}
	if whole {
		newWholePods(sleepRuntime{runtime}).options(&opts)
	}
	provider, err := virtualkubelet.New(opts)
	require.NoError(t, err)
	return &measuredProvider{withoutStreams{provider}, runtime}
}

// killAll kills the processes that still run.
func (m *measuredProvider) killAll(t *testing.T) {
	t.Helper()
	m.runtime.byID.Range(func(id, _ any) bool {
		require.NoError(t, m.runtime.StopContainer(context.WithoutCancel(t.Context()), id.(string), 0))
		return true
	})
}

// cpuTime is the CPU time that a container has used.
type cpuTime struct {
	container string
	seconds   float64
}

// cpuTimes returns the CPU times of the running containers of a pod.
func (m *measuredProvider) cpuTimes(ctx context.Context, pod *v1.Pod) (times []cpuTime, err error) {
	running, err := m.runtime.Running(ctx, pod)
	for _, c := range running {
		p, _ := m.runtime.find(c.ID)
		process, err := procfs.NewProc(p.Process.Pid)
		if err != nil {
			return nil, err
		}
		stat, err := process.Stat()
		if err != nil {
			return nil, err
		}
		times = append(times, cpuTime{c.Name, stat.CPUTime()})
	}
	return times, err
}

func (m *measuredProvider) GetStatsSummary(ctx context.Context) (*stats.Summary, error) {
	pods, err := m.GetPods(ctx)
	summary := &stats.Summary{Node: stats.NodeStats{NodeName: e2eNode}}
	for _, pod := range pods {
		times, timesErr := m.cpuTimes(ctx, pod)
		err = cmp.Or(err, timesErr)
		podStats := stats.PodStats{PodRef: stats.PodReference{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}}
		for _, c := range times {
			cpu := &stats.CPUStats{Time: metav1.Now(), UsageCoreNanoSeconds: ptr.To(uint64(c.seconds * 1e9))}
			podStats.Containers = append(podStats.Containers, stats.ContainerStats{Name: c.container, CPU: cpu})
		}
		summary.Pods = append(summary.Pods, podStats)
	}
	return summary, err
}

func (m *measuredProvider) GetMetricsResource(ctx context.Context) ([]*dto.MetricFamily, error) {
	pods, err := m.GetPods(ctx)
	kind := dto.MetricType_COUNTER
	containers := &dto.MetricFamily{Name: ptr.To("container_cpu_usage_seconds_total"), Type: &kind}
	podTotals := &dto.MetricFamily{Name: ptr.To("pod_cpu_usage_seconds_total"), Type: &kind}
	for _, pod := range pods {
		times, timesErr := m.cpuTimes(ctx, pod)
		err = cmp.Or(err, timesErr)
		var sum float64
		for _, c := range times {
			sum += c.seconds
			containers.Metric = append(containers.Metric, counter(c.seconds, "container", c.container, "pod", pod.Name, "namespace", pod.Namespace))
		}
		podTotals.Metric = append(podTotals.Metric, counter(sum, "namespace", pod.Namespace, "pod", pod.Name))
	}
	return []*dto.MetricFamily{containers, podTotals}, err
}

// counter returns a counter metric whose labels are pairs of a name and a value, in their
// order: the suite expects the name of the pod in the second label.
func counter(value float64, pairs ...string) *dto.Metric {
	metric := &dto.Metric{Counter: &dto.Counter{Value: &value}}
	for i := 0; i < len(pairs); i += 2 {
		metric.Label = append(metric.Label, &dto.LabelPair{Name: &pairs[i], Value: &pairs[i+1]})
	}
	return metric
}
