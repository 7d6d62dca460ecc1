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

package eviction

import (
	v1 "k8s.io/api/core/v1"

	"k8s.io/kubernetes/pkg/kubelet/kubegrace"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// softGracePeriod returns the grace period of an eviction at a soft threshold, in seconds. stock is the one that the
// kubelet has computed. A negative maximum means the pod's own grace period, as evictionMaxPodGracePeriod documents
// (k/k#118172). In all other cases, and if the gate is off, the result is stock.
func (m *managerImpl) softGracePeriod(pod *v1.Pod, stock int64) int64 {
	if !kubegrace.Enabled(kubegrace.Termination) || m.config.MaxPodGracePeriodSeconds >= 0 {
		return stock
	}
	return graceperiod.ForSoftEviction(pod, m.config.MaxPodGracePeriodSeconds)
}
