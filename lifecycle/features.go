package lifecycle

import (
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/features"
)

const (
	// PodLifecycleSleepAction lets a hook sleep. Off: a sleep hook returns at
	// once and says nothing, as in a kubelet without the gate (KEP-3960).
	PodLifecycleSleepAction = features.PodLifecycleSleepAction
	// ContainerStopSignals lets a container choose its stop signal (KEP-4960). Nothing
	// here asks it: whoever creates containers does, see package stopsignal.
	ContainerStopSignals = features.ContainerStopSignals
)

// FeatureGate answers whether a feature is on; a fork's DefaultFeatureGate is
// one. Where one is taken, nil means the default of every gate.
type FeatureGate interface {
	Enabled(key featuregate.Feature) bool
}

// AddFeatureGates adds the gates of this package to gate, and that of
// PodLifecycleSleepActionAllowZero (KEP-4818), which validation asks for, except those
// that it has already. It must be called before the gate's AddFlag, which closes it.
func AddFeatureGates(gate featuregate.MutableFeatureGate) error {
	return features.Add(gate, PodLifecycleSleepAction, features.PodLifecycleSleepActionAllowZero, ContainerStopSignals)
}
