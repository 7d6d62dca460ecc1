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
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"

	"github.com/kubegrace/kubegrace/shutdown"
)

// Admit implements [Manager].
func (m *kubegraceManager) Admit(_ context.Context, attrs *lifecycle.PodAdmitAttributes) lifecycle.PodAdmitResult {
	return m.admit(attrs)
}

// Start implements [Manager]. The manager runs until ctx ends.
func (m *kubegraceManager) Start(ctx context.Context) error { return m.start(ctx) }

// nodeStatus returns a reporter that makes the kubelet publish the node's status. It passes on no state, because the
// kubelet asks the manager for that itself.
func nodeStatus(conf *Config) shutdown.Reporter {
	return shutdown.ReporterFunc(func(ctx context.Context, _ shutdown.NodeState) error {
		conf.SyncNodeStatusFunc(klog.NewContext(ctx, conf.Logger))
		return nil
	})
}

// observedStatus returns a function that calls set and sets the generation of the condition DisruptionTarget as the
// kubelet does.
func observedStatus(pod *v1.Pod, set func(*v1.PodStatus)) func(*v1.PodStatus) {
	return func(status *v1.PodStatus) {
		generation := podutil.CalculatePodConditionObservedGeneration(status, pod.Generation, v1.DisruptionTarget)
		set(status)
		if _, condition := podutil.GetPodCondition(status, v1.DisruptionTarget); condition != nil {
			condition.ObservedGeneration = generation
		}
	}
}
