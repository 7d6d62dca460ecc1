// Package features stands in for the kubelet's package of this name. It declares only the feature gates that kubegrace
// reads, or the files that a fork copies from here (SERIES.md).
package features

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

const (
	GracefulNodeShutdown                   featuregate.Feature = "GracefulNodeShutdown"
	GracefulNodeShutdownBasedOnPodPriority featuregate.Feature = "GracefulNodeShutdownBasedOnPodPriority"
	PodLifecycleSleepAction                featuregate.Feature = "PodLifecycleSleepAction"
)

// init adds the gates to Kubernetes' gate.
func init() { //nolint:gochecknoinits // as in k8s.io/kubernetes/pkg/features
	beta := featuregate.FeatureSpec{Default: true, PreRelease: featuregate.Beta}
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		GracefulNodeShutdown:                   beta,
		GracefulNodeShutdownBasedOnPodPriority: beta,
		PodLifecycleSleepAction:                beta,
	}))
}
