package featuregates

import (
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/validation"
)

// Options returns the options for the current values of five feature gates:
// PodLifecycleSleepAction, PodLifecycleSleepActionAllowZero, ContainerStopSignals,
// GracefulNodeShutdown and GracefulNodeShutdownBasedOnPodPriority. A feature that gate does not
// have is on, because Kubernetes removes the gates of stable features. With a nil gate all five
// are on.
func Options(gate featuregate.FeatureGate) validation.Options {
	off := func(key featuregate.Feature) bool { return !features.Enabled(gate, key) }
	return validation.Options{
		NoSleepAction:           off(features.PodLifecycleSleepAction),
		NoZeroSleep:             off(features.PodLifecycleSleepActionAllowZero),
		NoStopSignals:           off(features.ContainerStopSignals),
		NoGracefulNodeShutdown:  off(features.GracefulNodeShutdown),
		NoShutdownByPodPriority: off(features.GracefulNodeShutdownBasedOnPodPriority),
	}
}
