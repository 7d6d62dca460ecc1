package validation

import v1 "k8s.io/api/core/v1"

// Options says which features are off. The zero value has all of them on, as Kubernetes
// has by default. A program with feature gates makes its options of them once, with
// package validation/featuregates, and passes them to every call.
type Options struct {
	// NoSleepAction drops and refuses hooks that sleep (KEP-3960). It is for a gate
	// PodLifecycleSleepAction that is off: a kubelet without that gate does not sleep,
	// and reports nothing.
	NoSleepAction bool
	// NoZeroSleep refuses sleeps of zero seconds, and drops none of them (KEP-4818). It
	// is for a gate PodLifecycleSleepActionAllowZero that is off.
	NoZeroSleep bool
	// NoStopSignals drops and refuses stop signals (KEP-4960). It is for a gate
	// ContainerStopSignals that is off.
	NoStopSignals bool
	// NoGracefulNodeShutdown refuses the shutdown grace period of a node (KEP-2000). It
	// is for a gate GracefulNodeShutdown that is off.
	NoGracefulNodeShutdown bool
	// NoShutdownByPodPriority refuses the list of shutdown grace periods by priority
	// (KEP-2712). It is for a gate GracefulNodeShutdownBasedOnPodPriority that is off.
	NoShutdownByPodPriority bool
}

// ForUpdate returns the options for a spec that replaces old, the stored spec. A feature
// that old uses is on, whatever o says, so that a stored object does not become invalid
// when a feature is switched off. With a nil old the options are those of o.
//
// [DropDisabledFields] and [ValidatePodTerminationUpdate] call ForUpdate themselves. Call
// it for objects whose pod template may change, such as a Deployment: each update is
// checked with [ValidatePodTermination].
func (o Options) ForUpdate(old *v1.PodSpec) Options {
	o.NoSleepAction = o.NoSleepAction && !uses(old, hasSleep)
	o.NoZeroSleep = o.NoZeroSleep && !uses(old, hasZeroSleep)
	o.NoStopSignals = o.NoStopSignals && !uses(old, hasStopSignal)
	return o
}

// uses reports whether has is true for the lifecycle of any container.
func uses(spec *v1.PodSpec, has func(*v1.Lifecycle) bool) bool {
	for lifecycle := range lifecycles(spec) {
		if *lifecycle != nil && has(*lifecycle) {
			return true
		}
	}
	return false
}

// hasSleep reports whether a hook sleeps.
func hasSleep(lifecycle *v1.Lifecycle) bool {
	return sleepOf(lifecycle.PreStop) != nil || sleepOf(lifecycle.PostStart) != nil
}

// hasZeroSleep reports whether a hook sleeps for zero seconds.
func hasZeroSleep(lifecycle *v1.Lifecycle) bool {
	isZero := func(sleep *v1.SleepAction) bool { return sleep != nil && sleep.Seconds == 0 }
	return isZero(sleepOf(lifecycle.PreStop)) || isZero(sleepOf(lifecycle.PostStart))
}

// hasStopSignal reports whether a stop signal is set.
func hasStopSignal(lifecycle *v1.Lifecycle) bool { return lifecycle.StopSignal != nil }

// sleepOf returns the sleep of a hook, nil if it has none or is nil.
func sleepOf(hook *v1.LifecycleHandler) *v1.SleepAction {
	if hook == nil {
		return nil
	}
	return hook.Sleep
}
