/*
Copyright The kubegrace Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package nodeshutdown

import (
	"cmp"
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"

	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// kubegraceEnabled reports whether NewManager returns the manager of newKubegraceManager.
func kubegraceEnabled() bool { return kubegrace.Enabled(kubegrace.NodeShutdown) }

// newKubegraceManager returns kubegrace's shutdown manager. It returns the kubelet's stub if GracefulNodeShutdown is
// off, no time is configured, or the Config is invalid, which is logged.
func newKubegraceManager(conf *Config) Manager {
	host, err := logind.New(logind.Options{Who: "kubelet", Why: "Kubelet needs time to handle node shutdown"})
	if err != nil {
		conf.Logger.Error(err, "Failed to create the source of node shutdowns")
		return managerStub{}
	}
	return newManagerOfHost(conf, host)
}

// newManagerOfHost is newKubegraceManager with the host as a parameter. Tests pass a fake host.
func newManagerOfHost(conf *Config, host source.Source) Manager {
	if !utilfeature.DefaultFeatureGate.Enabled(features.GracefulNodeShutdown) {
		return managerStub{}
	}
	config := plan.Config{
		ShutdownGracePeriod:             metav1.Duration{Duration: conf.ShutdownGracePeriodRequested},
		ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: conf.ShutdownGracePeriodCriticalPods},
	}
	for _, group := range conf.ShutdownGracePeriodByPodPriority {
		config.ShutdownGracePeriodByPodPriority = append(config.ShutdownGracePeriodByPodPriority, plan.PodPriorityGracePeriod(group))
	}
	schedule := config.Schedule(utilfeature.DefaultFeatureGate.Enabled(features.GracefulNodeShutdownBasedOnPodPriority))
	killer := shutdown.PodKillerFunc(func(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
		return shutdown.KillResult{}, conf.KillPodFunc(pod, req.Evict, req.GracePeriodSeconds, observedStatus(pod, req.SetStatus))
	})
	opts := shutdown.Options{
		Config: config,
		// The kubelet requests exactly the configured seconds, so they are also the limit. If there are none, the limit is
		// -1 (no delay), because 0 would mean that there is no limit.
		Plan:     plan.Options{Limit: cmp.Or(schedule.Total(), -1)},
		ListPods: shutdown.ListPodsFunc(conf.GetPodsFunc, nil),
		Killer:   killer,
		Source:   host,
		Volumes:  conf.VolumeManager,
		Reporter: nodeStatus(conf),
		Events:   conf.Recorder,
		Node:     conf.NodeRef,
		Metrics:  kubegrace.ShutdownMetrics(conf.Logger),
		Gates:    utilfeature.DefaultFeatureGate,
		StateDir: conf.StateDirectory,
	}
	if conf.Clock != nil {
		opts.Clock = conf.Clock
	}
	manager, err := shutdown.NewManager(opts)
	if err != nil {
		conf.Logger.Error(err, "Failed to create the node shutdown manager")
		return managerStub{}
	}
	if manager.Inhibitor().Off != "" { // no time is configured
		return managerStub{}
	}
	return &kubegraceManager{Manager: manager, logger: conf.Logger}
}

// kubegraceManager implements [Manager] with a [shutdown.Manager], which has ShutdownStatus.
type kubegraceManager struct {
	*shutdown.Manager
	logger klog.Logger
}

// admit refuses pods while the node shuts down. attrs, and the pod in them, may be nil.
func (m *kubegraceManager) admit(attrs *lifecycle.PodAdmitAttributes) lifecycle.PodAdmitResult {
	var pod *v1.Pod // a nil pod is refused, too
	if attrs != nil {
		pod = attrs.Pod
	}
	return lifecycle.PodAdmitResult(m.Manager.Admit(pod))
}

// start runs the manager until ctx ends. It returns after the first attempt to take the inhibitor lock, at most two
// seconds later if logind does not respond. A missing lock or a shorter delay is no error, because the manager logs it
// and retries.
func (m *kubegraceManager) start(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- m.Run(klog.NewContext(ctx, m.logger)) }()
	select {
	case err := <-ended:
		return err
	case <-m.Ready():
		return nil
	}
}
