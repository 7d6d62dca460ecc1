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

// NewManager returns the shutdown manager of a kubelet. It returns no error, so Start
// returns what is wrong with the Config or the host.
func NewManager(conf *Config) Manager {
	host, err := logind.New(logind.Options{Who: "kubelet", Why: "Kubelet needs time to handle node shutdown"})
	if err != nil {
		return noManager{err}
	}
	return newManager(conf, host)
}

// newManager is NewManager with another source.
func newManager(conf *Config, host shutdown.Source) Manager {
	series, err := metrics.NewShutdown(legacyregistry.Registerer(), metrics.Options{})
	if err != nil { // nil metrics record nothing
		conf.Logger.Error(err, "Node shutdowns are not counted")
	}
	m, err := shutdown.NewManager(shutdown.Options{
		Config:   conf.plan(),
		Pods:     shutdown.PodsFunc(conf.GetPodsFunc),
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
	config := plan.Config{
		ShutdownGracePeriod:             metav1.Duration{Duration: c.ShutdownGracePeriodRequested},
		ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: c.ShutdownGracePeriodCriticalPods},
	}
	for _, p := range c.ShutdownGracePeriodByPodPriority {
		config.ShutdownGracePeriodByPodPriority = append(config.ShutdownGracePeriodByPodPriority, plan.PodPriorityGracePeriod(p))
	}
	return config
}

func (c *Config) killPod(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	return shutdown.KillResult{}, c.KillPodFunc(pod, req.Evict, req.GracePeriodSeconds, req.SetStatus)
}

func (c *Config) publish(context.Context, shutdown.NodeState) error {
	c.SyncNodeStatusFunc()
	return nil
}

// manager implements [Manager]. ShutdownStatus is the embedded manager's.
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

// Start runs the manager in the background and returns when the inhibitor is held, or
// when it is known why it is not; that takes two seconds at most if logind does not
// answer. The error is meant for the log, as in the kubelet. The manager goes on trying
// until ctx ends.
func (m *manager) Start(ctx context.Context) error {
	go func() {
		if err := m.Run(klog.NewContext(ctx, m.logger)); err != nil {
			m.logger.Error(err, "Node shutdown manager has ended")
		}
	}()
	<-m.Ready()
	return m.Inhibitor().Err
}

// noManager replaces a manager that could not be made. It admits every pod.
type noManager struct{ err error }

func (noManager) Admit(*PodAdmitAttributes) PodAdmitResult { return PodAdmitResult{Admit: true} }
func (m noManager) Start(context.Context) error            { return m.err }
func (noManager) ShutdownStatus() error                    { return nil }
