package lifecycle

import (
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/features"
)

const (
	// PodLifecycleSleepAction enables sleep hooks (KEP-3960). If it is off, a sleep hook is skipped
	// without a failure, as in a kubelet without the feature.
	PodLifecycleSleepAction = features.PodLifecycleSleepAction
	// ContainerStopSignals lets a container choose its stop signal (KEP-4960). This package does not
	// read it; code that creates containers does, see package stopsignal.
	ContainerStopSignals = features.ContainerStopSignals
)

// AddFeatureGates adds the features of this package to gate, and PodLifecycleSleepActionAllowZero
// (KEP-4818), which package validation reads. A feature that gate already has is not changed. Call
// AddFeatureGates before gate's AddFlag, after which no feature can be added.
func AddFeatureGates(gate featuregate.MutableFeatureGate) error {
	return features.Add(gate, PodLifecycleSleepAction, features.PodLifecycleSleepActionAllowZero, ContainerStopSignals)
}
