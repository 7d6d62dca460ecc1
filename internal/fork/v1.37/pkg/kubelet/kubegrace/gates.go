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

// Package kubegrace has what the kubelet's packages share where they use kubegrace: the
// feature gates with which an operator switches it on and off, and the series of metrics.
package kubegrace

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

const (
	// NodeShutdown drains the node at its shutdown with kubegrace. It is read when the shutdown
	// manager is made.
	NodeShutdown featuregate.Feature = "KubegraceNodeShutdown"
	// Hooks runs lifecycle hooks with kubegrace. It is read when the runner of the hooks is made.
	Hooks featuregate.Feature = "KubegraceHooks"
	// Termination stops containers with kubegrace, and shortens what is under way. It is read
	// with each kill; what has begun ends as it began.
	Termination featuregate.Feature = "KubegraceTermination"
)

// init adds the gates, as Kubernetes adds its own: a gate must be known before the flags are read.
func init() { //nolint:gochecknoinits // as in k8s.io/kubernetes/pkg/features
	off := featuregate.FeatureSpec{Default: false, PreRelease: featuregate.Alpha}
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		NodeShutdown: off, Hooks: off, Termination: off,
	}))
}

// Enabled reports whether a gate is on.
func Enabled(gate featuregate.Feature) bool { return utilfeature.DefaultFeatureGate.Enabled(gate) }
