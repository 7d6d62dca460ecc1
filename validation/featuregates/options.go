package featuregates

import (
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/validation"
)

// Options resolves the five gates that validation knows: PodLifecycleSleepAction,
// PodLifecycleSleepActionAllowZero, ContainerStopSignals, GracefulNodeShutdown and
// GracefulNodeShutdownBasedOnPodPriority. One that gate lacks counts as on: nobody
// added it there, or upstream has removed it once it was on for good. A nil gate has
// all of them on. What is set on the gate later does not change the result.
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
