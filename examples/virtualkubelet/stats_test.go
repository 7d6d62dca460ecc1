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

// sleepRuntime runs "sleep" for containers without a command, such as those of the suite.
type sleepRuntime struct{ *processes }

// StartContainer starts the container's command, or "sleep 3600" if it has none.
func (r sleepRuntime) StartContainer(ctx context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	c = c.DeepCopy()
	if len(c.Command) == 0 {
		c.Command = []string{"sleep", "3600"}
	}
	return r.processes.StartContainer(ctx, pod, c)
}

// measuredProvider adds the stats and metrics that the suite requests: the CPU times of the processes in /proc.
type measuredProvider struct {
	withoutStreams

	runtime *processes
}

// newMeasuredProvider returns a provider whose containers are processes.
func newMeasuredProvider(t *testing.T) *measuredProvider {
	t.Helper()
	runtime := &processes{}
	provider, err := virtualkubelet.New(virtualkubelet.Options{
		Runtime: sleepRuntime{runtime},
		Status:  func(pod *v1.Pod) { pod.Status.HostIP, pod.Status.PodIP = "127.0.0.1", "127.0.0.1" },
	})
	require.NoError(t, err)
	return &measuredProvider{withoutStreams{provider}, runtime}
}

// killAll kills the running processes.
func (m *measuredProvider) killAll(t *testing.T) {
	t.Helper()
	m.runtime.byID.Range(func(id, _ any) bool {
		require.NoError(t, m.runtime.StopContainer(context.WithoutCancel(t.Context()), id.(string), 0))
		return true
	})
}

// cpuTime is the CPU time of a container.
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

// GetStatsSummary returns the CPU time of each running container.
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

// GetMetricsResource returns the CPU time of each running container, and the sum of each pod.
func (m *measuredProvider) GetMetricsResource(ctx context.Context) ([]*dto.MetricFamily, error) {
	pods, err := m.GetPods(ctx)
	kind := dto.MetricType_COUNTER
	perContainer := &dto.MetricFamily{Name: ptr.To("container_cpu_usage_seconds_total"), Type: &kind}
	perPod := &dto.MetricFamily{Name: ptr.To("pod_cpu_usage_seconds_total"), Type: &kind}
	for _, pod := range pods {
		times, timesErr := m.cpuTimes(ctx, pod)
		err = cmp.Or(err, timesErr)
		var sum float64
		for _, c := range times {
			sum += c.seconds
			perContainer.Metric = append(perContainer.Metric, counter(c.seconds, "container", c.container, "pod", pod.Name, "namespace", pod.Namespace))
		}
		perPod.Metric = append(perPod.Metric, counter(sum, "namespace", pod.Namespace, "pod", pod.Name))
	}
	return []*dto.MetricFamily{perContainer, perPod}, err
}

// counter returns a counter with labels in the order of pairs of name and value. The suite expects the pod's name in
// the second label.
func counter(value float64, pairs ...string) *dto.Metric {
	metric := &dto.Metric{Counter: &dto.Counter{Value: &value}}
	for i := 0; i < len(pairs); i += 2 {
		metric.Label = append(metric.Label, &dto.LabelPair{Name: &pairs[i], Value: &pairs[i+1]})
	}
	return metric
}
