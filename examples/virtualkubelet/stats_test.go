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

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

var _ nodeutil.Provider = (*measured)(nil)

// images runs processes, too, for containers that have an image and no command.
type images struct{ *processes }

func (i images) StartContainer(ctx context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	c = c.DeepCopy()
	if len(c.Command) == 0 {
		c.Command = []string{"sleep", "3600"}
	}
	return i.processes.StartContainer(ctx, pod, c)
}

// measured is the provider of the program with stats and metrics: the CPU time that the
// kernel tells of the processes.
type measured struct {
	withoutStreams

	processes *processes
}

func newMeasured(t *testing.T) *measured {
	t.Helper()
	running := &processes{}
	provider, err := virtualkubelet.New(virtualkubelet.Options{
		Runtime: images{running},
		Status:  func(pod *v1.Pod) { pod.Status.HostIP, pod.Status.PodIP = "127.0.0.1", "127.0.0.1" },
	})
	require.NoError(t, err)
	return &measured{withoutStreams{provider}, running}
}

// kill ends the processes that still run.
func (n *measured) kill(t *testing.T) {
	t.Helper()
	n.processes.byID.Range(func(id, _ any) bool {
		require.NoError(t, n.processes.StopContainer(context.WithoutCancel(t.Context()), id.(string), 0))
		return true
	})
}

// usage is what a container has used.
type usage struct {
	name string
	cpu  float64 // seconds
}

// usages are those of the containers of a pod that run.
func (n *measured) usages(pod *v1.Pod) (used []usage, err error) {
	for _, c := range lifecycle.ContainersOf(pod) {
		running, ok := n.processes.find(c.ID)
		if !ok {
			return nil, lifecycle.ErrContainerNotFound
		}
		process, err := procfs.NewProc(running.Process.Pid)
		if err != nil {
			return nil, err
		}
		stat, err := process.Stat()
		if err != nil {
			return nil, err
		}
		used = append(used, usage{c.Name, stat.CPUTime()})
	}
	return used, nil
}

func (n *measured) GetStatsSummary(ctx context.Context) (*stats.Summary, error) {
	pods, err := n.GetPods(ctx)
	summary := &stats.Summary{Node: stats.NodeStats{NodeName: e2eNode}}
	for _, pod := range pods {
		used, usedErr := n.usages(pod)
		err = cmp.Or(err, usedErr)
		of := stats.PodStats{PodRef: stats.PodReference{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}}
		for _, u := range used {
			cpu := &stats.CPUStats{Time: metav1.Now(), UsageCoreNanoSeconds: ptr.To(uint64(u.cpu * 1e9))}
			of.Containers = append(of.Containers, stats.ContainerStats{Name: u.name, CPU: cpu})
		}
		summary.Pods = append(summary.Pods, of)
	}
	return summary, err
}

func (n *measured) GetMetricsResource(ctx context.Context) ([]*dto.MetricFamily, error) {
	pods, err := n.GetPods(ctx)
	kind := dto.MetricType_COUNTER
	containers := &dto.MetricFamily{Name: ptr.To("container_cpu_usage_seconds_total"), Type: &kind}
	all := &dto.MetricFamily{Name: ptr.To("pod_cpu_usage_seconds_total"), Type: &kind}
	for _, pod := range pods {
		used, usedErr := n.usages(pod)
		err = cmp.Or(err, usedErr)
		var sum float64
		for _, u := range used {
			sum += u.cpu
			containers.Metric = append(containers.Metric, counter(u.cpu, "container", u.name, "pod", pod.Name, "namespace", pod.Namespace))
		}
		all.Metric = append(all.Metric, counter(sum, "namespace", pod.Namespace, "pod", pod.Name))
	}
	return []*dto.MetricFamily{containers, all}, err
}

// counter is a series whose labels are pairs, in the order that virtual-kubelet's tests
// expect: the name of the pod is the second one.
func counter(value float64, pairs ...string) *dto.Metric {
	metric := &dto.Metric{Counter: &dto.Counter{Value: &value}}
	for i := 0; i < len(pairs); i += 2 {
		metric.Label = append(metric.Label, &dto.LabelPair{Name: &pairs[i], Value: &pairs[i+1]})
	}
	return metric
}
