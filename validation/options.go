package validation

import v1 "k8s.io/api/core/v1"

// Options selects the features that are off. In the zero value all features are on, as in
// Kubernetes by default. Package validation/featuregates converts feature gates to Options.
type Options struct {
	// NoSleepAction drops and rejects sleep hooks (KEP-3960, gate PodLifecycleSleepAction). A
	// kubelet without that gate silently ignores them.
	NoSleepAction bool
	// NoZeroSleep rejects sleeps of 0 s, but does not drop them (KEP-4818, gate
	// PodLifecycleSleepActionAllowZero).
	NoZeroSleep bool
	// NoStopSignals drops and rejects stop signals (KEP-4960, gate ContainerStopSignals).
	NoStopSignals bool
	// NoGracefulNodeShutdown rejects the shutdown grace period of a node (KEP-2000, gate
	// GracefulNodeShutdown).
	NoGracefulNodeShutdown bool
	// NoShutdownByPodPriority rejects the list of shutdown grace periods by priority (KEP-2712,
	// gate GracefulNodeShutdownBasedOnPodPriority).
	NoShutdownByPodPriority bool
}

// ForUpdate returns the options for a spec that replaces the stored spec old. Features that
// old uses are on, so that a stored object does not become invalid when a feature is switched
// off. If old is nil, it returns o.
//
// [DropDisabledFields] calls ForUpdate. Call it yourself to check the update of a pod or of a pod
// template, such as a Deployment's, with [ValidatePodTermination].
func (o Options) ForUpdate(old *v1.PodSpec) Options {
	o.NoSleepAction = o.NoSleepAction && !uses(old, hasSleep)
	o.NoZeroSleep = o.NoZeroSleep && !uses(old, hasZeroSleep)
	o.NoStopSignals = o.NoStopSignals && !uses(old, hasStopSignal)
	return o
}

// uses reports whether any container of spec uses a feature. has reports whether a lifecycle uses
// it.
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

// sleepOf returns the sleep of a hook, or nil. hook may be nil.
func sleepOf(hook *v1.LifecycleHandler) *v1.SleepAction {
	if hook == nil {
		return nil
	}
	return hook.Sleep
}
