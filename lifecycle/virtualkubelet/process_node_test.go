//go:build linux

package virtualkubelet_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"
	nodeapi "github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

var _ nodeutil.Provider = (*processNode)(nil)

// errNoStreams is what a node of processes answers to logs, exec, attach and port-forward.
var errNoStreams = errors.New("not supported by a node of processes")

// images runs processes, too, for containers that have an image and no command.
type images struct{ *machine }

func (i images) StartContainer(ctx context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	c = c.DeepCopy()
	if len(c.Command) == 0 {
		c.Command = []string{"sleep", "3600"}
	}
	return i.machine.StartContainer(ctx, pod, c)
}

// processNode is a provider of processes, with what else virtual-kubelet's nodes want: the
// use of CPU that the kernel tells of them.
type processNode struct {
	*virtualkubelet.Provider

	machine *machine
}

func newProcessNode(t *testing.T) *processNode {
	t.Helper()
	n := &processNode{machine: &machine{}}
	var err error
	n.Provider, err = virtualkubelet.New(virtualkubelet.Options{
		Runtime: images{n.machine},
		Status:  func(pod *v1.Pod) { pod.Status.HostIP, pod.Status.PodIP = "127.0.0.1", "127.0.0.1" },
	})
	require.NoError(t, err)
	return n
}

// kill ends the processes that still run.
func (n *processNode) kill(t *testing.T) {
	t.Helper()
	n.machine.processes.Range(func(id, _ any) bool {
		require.NoError(t, n.machine.StopContainer(context.WithoutCancel(t.Context()), id.(string), 0))
		return true
	})
}

// usage is what a container has used.
type usage struct {
	name string
	cpu  float64 // seconds
}

// usages are those of the containers of a pod that run.
func (n *processNode) usages(pod *v1.Pod) (used []usage, err error) {
	for _, c := range lifecycle.ContainersOf(pod) {
		process, err := procfs.NewProc(n.machine.process(c.ID).cmd.Process.Pid)
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

func (n *processNode) GetStatsSummary(ctx context.Context) (*stats.Summary, error) {
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

func (n *processNode) GetMetricsResource(ctx context.Context) ([]*dto.MetricFamily, error) {
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

func (*processNode) GetContainerLogs(context.Context, string, string, string, nodeapi.ContainerLogOpts) (io.ReadCloser, error) {
	return nil, errNoStreams
}

func (*processNode) RunInContainer(context.Context, string, string, string, []string, nodeapi.AttachIO) error {
	return errNoStreams
}

func (*processNode) AttachToContainer(context.Context, string, string, string, nodeapi.AttachIO) error {
	return errNoStreams
}

func (*processNode) PortForward(context.Context, string, string, int32, io.ReadWriteCloser) error {
	return errNoStreams
}
