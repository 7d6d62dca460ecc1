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

// Package kubegrace has what the kubelet's packages share when they use kubegrace: its feature gates and its metrics.
package kubegrace

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

const (
	// NodeShutdown drains the node with kubegrace when it shuts down. It is read when the shutdown manager is created.
	NodeShutdown featuregate.Feature = "KubegraceNodeShutdown"
	// Hooks runs lifecycle hooks with kubegrace. It is read when the hook runner is created.
	Hooks featuregate.Feature = "KubegraceHooks"
	// Termination stops containers and kills pods with kubegrace. It is read for each kill, and a change does not affect
	// a kill that has begun.
	Termination featuregate.Feature = "KubegraceTermination"
)

// init adds the gates, because a gate must be known before the flags are parsed.
func init() { //nolint:gochecknoinits // as in k8s.io/kubernetes/pkg/features
	off := featuregate.FeatureSpec{Default: false, PreRelease: featuregate.Alpha}
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		NodeShutdown: off, Hooks: off, Termination: off,
	}))
}

// Enabled reports whether a gate is on.
func Enabled(gate featuregate.Feature) bool { return utilfeature.DefaultFeatureGate.Enabled(gate) }
