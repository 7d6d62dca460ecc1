package features

import (
	"fmt"

	"k8s.io/component-base/featuregate"
)

const (
	// PodLifecycleSleepAction lets a hook sleep (KEP-3960).
	PodLifecycleSleepAction featuregate.Feature = "PodLifecycleSleepAction"
	// PodLifecycleSleepActionAllowZero lets a sleep be of zero seconds (KEP-4818).
	PodLifecycleSleepActionAllowZero featuregate.Feature = "PodLifecycleSleepActionAllowZero"
	// ContainerStopSignals lets a container choose its stop signal (KEP-4960).
	ContainerStopSignals featuregate.Feature = "ContainerStopSignals"
	// GracefulNodeShutdown drains the node when its host shuts down (KEP-2000).
	GracefulNodeShutdown featuregate.Feature = "GracefulNodeShutdown"
	// GracefulNodeShutdownBasedOnPodPriority drains by priority bucket (KEP-2712).
	GracefulNodeShutdownBasedOnPodPriority featuregate.Feature = "GracefulNodeShutdownBasedOnPodPriority"
)

// Gate answers whether a feature is on. Every feature gate of the ecosystem,
// a fork's DefaultFeatureGate included, is one.
type Gate interface {
	Enabled(key featuregate.Feature) bool
}

// lister is the part of a mutable gate that tells which features were added.
type lister interface {
	GetAll() map[featuregate.Feature]featuregate.FeatureSpec
}

// spec gives the last upstream stage of a gate and its default. None is locked:
// an agent may be asked to behave like a kubelet that has the gate off.
func spec(key featuregate.Feature) (featuregate.FeatureSpec, bool) {
	switch key {
	case PodLifecycleSleepAction, PodLifecycleSleepActionAllowZero:
		return featuregate.FeatureSpec{Default: true, PreRelease: featuregate.GA}, true
	case ContainerStopSignals, GracefulNodeShutdown, GracefulNodeShutdownBasedOnPodPriority:
		return featuregate.FeatureSpec{Default: true, PreRelease: featuregate.Beta}, true
	default:
		return featuregate.FeatureSpec{}, false
	}
}

// Enabled tells whether key is on in gate. A nil gate, and one to which key was
// never added, give the default of kubegrace. It reads the whole gate: ask it
// once, in a constructor.
func Enabled(gate Gate, key featuregate.Feature) bool {
	def, _ := spec(key)
	if gate == nil {
		return def.Default
	}
	if all, ok := gate.(lister); ok {
		if _, known := all.GetAll()[key]; !known {
			return def.Default
		}
	}
	return gate.Enabled(key)
}

// Add adds those of keys that gate does not know yet. It must be called before
// the gate's AddFlag, which closes it; a closed gate that already knows all keys
// is left alone. An unknown key is an error and adds nothing.
func Add(gate featuregate.MutableFeatureGate, keys ...featuregate.Feature) error {
	known := gate.GetAll()
	missing := map[featuregate.Feature]featuregate.FeatureSpec{}
	for _, key := range keys {
		def, ok := spec(key)
		if !ok {
			return fmt.Errorf("feature gate %q is not one of kubegrace", key)
		}
		if _, ok := known[key]; !ok {
			missing[key] = def
		}
	}
	if len(missing) == 0 {
		return nil // a closed gate refuses even an empty Add
	}
	if err := gate.Add(missing); err != nil {
		return fmt.Errorf("failed to add feature gates: %w", err)
	}
	return nil
}
