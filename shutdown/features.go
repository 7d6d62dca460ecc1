package shutdown

import (
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/features"
)

const (
	// GracefulNodeShutdown drains the node when its host shuts down. Off: the
	// manager watches nothing, admits every pod and drains only when it is
	// triggered (KEP-2000).
	GracefulNodeShutdown = features.GracefulNodeShutdown
	// GracefulNodeShutdownBasedOnPodPriority drains by the buckets of
	// shutdownGracePeriodByPodPriority. Off: the two-field form alone counts,
	// and start and end are not stored (KEP-2712).
	GracefulNodeShutdownBasedOnPodPriority = features.GracefulNodeShutdownBasedOnPodPriority
)

// FeatureGate answers whether a feature is on, with Enabled(featuregate.Feature) bool; a
// fork's DefaultFeatureGate is one. Where one is taken, nil means the default of every gate.
type FeatureGate = features.Gate

// AddFeatureGates adds the gates of this package to gate, except those that it
// has already. It must be called before the gate's AddFlag, which closes it.
func AddFeatureGates(gate featuregate.MutableFeatureGate) error {
	return features.Add(gate, GracefulNodeShutdown, GracefulNodeShutdownBasedOnPodPriority)
}
