package shutdown

import (
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/features"
)

const (
	// GracefulNodeShutdown is the gate of KEP-2000: the node is drained when its host shuts down.
	// If it is off, the manager watches no host, admits every pod, and drains only on Trigger and
	// TerminateAll.
	GracefulNodeShutdown = features.GracefulNodeShutdown
	// GracefulNodeShutdownBasedOnPodPriority is the gate of KEP-2712: the buckets are those of
	// shutdownGracePeriodByPodPriority. If it is off, only shutdownGracePeriod and
	// shutdownGracePeriodCriticalPods count, and the start and the end of a shutdown are not
	// stored.
	GracefulNodeShutdownBasedOnPodPriority = features.GracefulNodeShutdownBasedOnPodPriority
	// DaemonSetGracefulNodeShutdown is the gate of KEP-6249, alpha and off by default. If it is on,
	// the reporter of package apistatus also publishes the node condition DrainInProgress.
	DaemonSetGracefulNodeShutdown = features.DaemonSetGracefulNodeShutdown
)

// AddFeatureGates adds the gates of this package to gate, except those that gate has. Call it
// before the gate's AddFlag, which refuses later additions; that is an error.
func AddFeatureGates(gate featuregate.MutableFeatureGate) error {
	return features.Add(gate, GracefulNodeShutdown, GracefulNodeShutdownBasedOnPodPriority, DaemonSetGracefulNodeShutdown)
}
