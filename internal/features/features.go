package features

import (
	"errors"
	"fmt"

	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/nilcheck"
)

const (
	// PodLifecycleSleepAction allows sleep hooks (KEP-3960).
	PodLifecycleSleepAction featuregate.Feature = "PodLifecycleSleepAction"
	// PodLifecycleSleepActionAllowZero allows sleeps of 0 s (KEP-4818).
	PodLifecycleSleepActionAllowZero featuregate.Feature = "PodLifecycleSleepActionAllowZero"
	// ContainerStopSignals allows a container to choose its stop signal (KEP-4960).
	ContainerStopSignals featuregate.Feature = "ContainerStopSignals"
	// GracefulNodeShutdown drains the node when its host shuts down (KEP-2000).
	GracefulNodeShutdown featuregate.Feature = "GracefulNodeShutdown"
	// GracefulNodeShutdownBasedOnPodPriority drains the node in buckets by pod
	// priority (KEP-2712).
	GracefulNodeShutdownBasedOnPodPriority featuregate.Feature = "GracefulNodeShutdownBasedOnPodPriority"
	// DaemonSetGracefulNodeShutdown publishes DrainInProgress on a node that shuts down (KEP-6249). The
	// name is from the KEP; no Kubernetes release up to v1.38.0-beta.0 has the gate.
	DaemonSetGracefulNodeShutdown featuregate.Feature = "DaemonSetGracefulNodeShutdown"
)

// Gate reports whether a feature is on. Every featuregate.FeatureGate implements it.
type Gate interface {
	Enabled(key featuregate.Feature) bool
}

// lister is implemented by gates that can list their features.
type lister interface {
	GetAll() map[featuregate.Feature]featuregate.FeatureSpec
}

// spec returns the last stage of a feature in Kubernetes and its default; known is false for a feature that
// this module does not have. Unlike in Kubernetes no stable feature is locked to its default, so that an
// agent can behave like an older kubelet with the feature off.
func spec(key featuregate.Feature) (spec featuregate.FeatureSpec, known bool) {
	switch key {
	case PodLifecycleSleepAction, PodLifecycleSleepActionAllowZero:
		return featuregate.FeatureSpec{Default: true, PreRelease: featuregate.GA}, true
	case ContainerStopSignals, GracefulNodeShutdown, GracefulNodeShutdownBasedOnPodPriority:
		return featuregate.FeatureSpec{Default: true, PreRelease: featuregate.Beta}, true
	case DaemonSetGracefulNodeShutdown:
		return featuregate.FeatureSpec{Default: false, PreRelease: featuregate.Alpha}, true
	default:
		return featuregate.FeatureSpec{}, false
	}
}

// Enabled reports whether key is on in gate. If gate is nil, or key was never added to it, it returns kubegrace's
// default. If gate cannot list its features, it returns what gate says. Enabled copies the whole gate, so call it once
// in a constructor.
func Enabled(gate Gate, key featuregate.Feature) bool {
	def, _ := spec(key)
	if gate == nil {
		return def.Default
	}
	if lists, ok := gate.(lister); ok {
		if _, wasAdded := lists.GetAll()[key]; !wasAdded {
			return def.Default
		}
	}
	return gate.Enabled(key)
}

// Add adds the features that gate does not have yet. Call it before the gate's AddFlag, which closes the
// gate. If the gate already has all of them, Add does nothing, even on a closed gate. For an unknown
// feature it returns an error and adds nothing.
func Add(gate featuregate.MutableFeatureGate, keys ...featuregate.Feature) error {
	if gate == nil || nilcheck.IsTypedNil(gate) {
		return errors.New("the feature gate is nil")
	}
	existing := gate.GetAll()
	missing := map[featuregate.Feature]featuregate.FeatureSpec{}
	for _, key := range keys {
		def, isKnown := spec(key)
		if !isKnown {
			return fmt.Errorf("unknown feature gate %q", key)
		}
		if _, exists := existing[key]; !exists {
			missing[key] = def
		}
	}
	if len(missing) == 0 {
		return nil // a closed gate returns an error even for an empty map
	}
	if err := gate.Add(missing); err != nil {
		return fmt.Errorf("failed to add feature gates: %w", err)
	}
	return nil
}
