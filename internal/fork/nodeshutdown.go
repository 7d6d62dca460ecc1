package fork

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// NewManager makes the shutdown manager of a kubelet. What is wrong with the Config, or with
// the host, is the error of Start, as NewManager has none.
func NewManager(conf *Config) Manager {
	host, err := logind.New(logind.Options{Who: "kubelet", Why: "Kubelet needs time to handle node shutdown"})
	if err != nil {
		return noManager{err}
	}
	return newManager(conf, host)
}

// newManager is NewManager on another host.
func newManager(conf *Config, host shutdown.Source) Manager {
	series, err := metrics.NewShutdown(legacyregistry.Registerer(), metrics.Options{})
	if err != nil { // nil series show nothing
		conf.Logger.Error(err, "Node shutdowns are not counted")
	}
	m, err := shutdown.NewManager(shutdown.Options{
		Config:   conf.plan(),
		Pods:     conf.GetPodsFunc,
		Killer:   shutdown.PodKillerFunc(conf.killPod),
		Source:   host,
		Volumes:  conf.VolumeManager,
		Reporter: shutdown.ReporterFunc(conf.publish),
		Events:   conf.Recorder,
		Node:     conf.NodeRef,
		Metrics:  series,
		Gates:    utilfeature.DefaultFeatureGate,
		StateDir: conf.StateDirectory,
	})
	if err != nil {
		return noManager{err}
	}
	return &manager{Manager: m, logger: conf.Logger}
}

func (c *Config) plan() plan.Config {
	own := plan.Config{
		ShutdownGracePeriod:             metav1.Duration{Duration: c.ShutdownGracePeriodRequested},
		ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: c.ShutdownGracePeriodCriticalPods},
	}
	for _, p := range c.ShutdownGracePeriodByPodPriority {
		own.ShutdownGracePeriodByPodPriority = append(own.ShutdownGracePeriodByPodPriority, plan.PodPriorityGracePeriod(p))
	}
	return own
}

func (c *Config) killPod(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	return shutdown.KillResult{}, c.KillPodFunc(pod, req.Evict, &req.GracePeriodSeconds, req.SetStatus)
}

func (c *Config) publish(context.Context, shutdown.NodeState) error {
	c.SyncNodeStatusFunc()
	return nil
}

// manager is a [Manager]; its ShutdownStatus is kubegrace's.
type manager struct {
	*shutdown.Manager
	logger klog.Logger
}

func (m *manager) Admit(attrs *PodAdmitAttributes) PodAdmitResult {
	var pod *v1.Pod
	if attrs != nil {
		pod = attrs.Pod
	}
	return PodAdmitResult(m.Manager.Admit(pod))
}

// Start returns when the host is held, or when it is known why not: within two seconds of a
// logind that does not answer. Its error is for the log, as in the kubelet; the manager goes
// on trying until ctx ends.
func (m *manager) Start(ctx context.Context) error {
	go func() {
		if err := m.Run(klog.NewContext(ctx, m.logger)); err != nil {
			m.logger.Error(err, "Node shutdown manager has ended")
		}
	}()
	<-m.Ready()
	return m.Inhibitor().Err
}

// noManager is the manager of a node that cannot have one. It admits every pod.
type noManager struct{ err error }

func (noManager) Admit(*PodAdmitAttributes) PodAdmitResult { return PodAdmitResult{Admit: true} }
func (m noManager) Start(context.Context) error            { return m.err }
func (noManager) ShutdownStatus() error                    { return nil }
