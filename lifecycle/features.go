package lifecycle

import (
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/features"
)

const (
	// PodLifecycleSleepAction allows sleep hooks (KEP-3960). If it is off, a sleep hook
	// returns at once without an error, as in a kubelet without the feature.
	PodLifecycleSleepAction = features.PodLifecycleSleepAction
	// ContainerStopSignals allows a container to choose its stop signal (KEP-4960).
	// This package does not read it. It is for the code that creates containers, see
	// package stopsignal.
	ContainerStopSignals = features.ContainerStopSignals
)

// AddFeatureGates adds the features of this package to gate, and
// PodLifecycleSleepActionAllowZero (KEP-4818), which package validation uses. Features that
// gate has already stay as they are. It must be called before the gate's AddFlag, which
// closes the gate.
func AddFeatureGates(gate featuregate.MutableFeatureGate) error {
	return features.Add(gate, PodLifecycleSleepAction, features.PodLifecycleSleepActionAllowZero, ContainerStopSignals)
}
