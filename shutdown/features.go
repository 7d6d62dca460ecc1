package shutdown

import (
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/features"
)

const (
	// GracefulNodeShutdown is the gate of KEP-2000, which drains the node when its host shuts down. If
	// it is off, the manager watches no host, stores nothing, and drains and refuses pods only on Trigger
	// and TerminateAll.
	GracefulNodeShutdown = features.GracefulNodeShutdown
	// GracefulNodeShutdownBasedOnPodPriority is the gate of KEP-2712, which adds
	// shutdownGracePeriodByPodPriority. If it is off, only shutdownGracePeriod and
	// shutdownGracePeriodCriticalPods are used, and graceful_node_shutdown_state is not written.
	GracefulNodeShutdownBasedOnPodPriority = features.GracefulNodeShutdownBasedOnPodPriority
	// DaemonSetGracefulNodeShutdown is the gate of KEP-6249, alpha and off by default. If it is on,
	// package apistatus also publishes the node condition DrainInProgress.
	DaemonSetGracefulNodeShutdown = features.DaemonSetGracefulNodeShutdown
)

// AddFeatureGates adds the gates of this package that gate does not have yet. Call it before gate.AddFlag,
// after which it returns an error.
func AddFeatureGates(gate featuregate.MutableFeatureGate) error {
	return features.Add(gate, GracefulNodeShutdown, GracefulNodeShutdownBasedOnPodPriority, DaemonSetGracefulNodeShutdown)
}
