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

	"k8s.io/kubernetes/pkg/kubelet/lifecycle"

	"github.com/kubegrace/kubegrace/shutdown"
)

// Admit implements [Manager].
func (m *kubegraceManager) Admit(attrs *lifecycle.PodAdmitAttributes) lifecycle.PodAdmitResult {
	return m.admit(attrs)
}

// Start implements [Manager]. The manager runs until the process ends.
func (m *kubegraceManager) Start() error { return m.start(context.Background()) }

// nodeStatus returns a reporter that makes the kubelet publish the node's status. It passes on no state, because the
// kubelet asks the manager for that itself.
func nodeStatus(conf *Config) shutdown.Reporter {
	return shutdown.ReporterFunc(func(context.Context, shutdown.NodeState) error {
		conf.SyncNodeStatusFunc()
		return nil
	})
}

// observedStatus returns set, because pod conditions have no generation in this version.
func observedStatus(_ *v1.Pod, set func(*v1.PodStatus)) func(*v1.PodStatus) { return set }
