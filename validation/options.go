package validation

import v1 "k8s.io/api/core/v1"

// Options says which features are off. The zero value has all of them on, as
// Kubernetes has them by default. It is a plain value: a program that has feature
// gates resolves them once (package validation/featuregates does it) and hands the
// result to every call.
type Options struct {
	// NoSleepAction has hooks that sleep dropped and refused (the gate
	// PodLifecycleSleepAction is off, KEP-3960): a kubelet without the gate would not
	// sleep, and say nothing.
	NoSleepAction bool
	// NoZeroSleep has sleeps of zero seconds refused (the gate
	// PodLifecycleSleepActionAllowZero is off, KEP-4818). None is dropped for it.
	NoZeroSleep bool
	// NoStopSignals has stop signals dropped and refused (the gate
	// ContainerStopSignals is off, KEP-4960).
	NoStopSignals bool
	// NoGracefulNodeShutdown has a shutdown grace period of a node refused (the gate
	// GracefulNodeShutdown is off, KEP-2000).
	NoGracefulNodeShutdown bool
	// NoShutdownByPodPriority has the list of shutdown grace periods by priority
	// refused (the gate GracefulNodeShutdownBasedOnPodPriority is off, KEP-2712).
	NoShutdownByPodPriority bool
}

// ForUpdate gives the options for a spec that replaces old, the stored one: what
// old uses already is allowed, whatever o says, so that switching a feature off
// makes no stored object invalid. A nil old allows nothing more.
//
// [DropDisabledFields] and [ValidatePodTerminationUpdate] do this by themselves. It
// is for objects whose pod template may change, as a Deployment's: their template is
// checked by [ValidatePodTermination] on every update.
func (o Options) ForUpdate(old *v1.PodSpec) Options {
	o.NoSleepAction = o.NoSleepAction && !uses(old, hasSleep)
	o.NoZeroSleep = o.NoZeroSleep && !uses(old, hasZeroSleep)
	o.NoStopSignals = o.NoStopSignals && !uses(old, hasStopSignal)
	return o
}

// uses tells whether any container of a spec has a lifecycle like that.
func uses(spec *v1.PodSpec, has func(*v1.Lifecycle) bool) bool {
	for lifecycle := range lifecycles(spec) {
		if *lifecycle != nil && has(*lifecycle) {
			return true
		}
	}
	return false
}

// hasSleep, hasZeroSleep and hasStopSignal are the uses that a gate is about. It
// does not matter whether the hook is one that would ever run.
func hasSleep(lifecycle *v1.Lifecycle) bool {
	return sleepOf(lifecycle.PreStop) != nil || sleepOf(lifecycle.PostStart) != nil
}

func hasZeroSleep(lifecycle *v1.Lifecycle) bool {
	isZero := func(sleep *v1.SleepAction) bool { return sleep != nil && sleep.Seconds == 0 }
	return isZero(sleepOf(lifecycle.PreStop)) || isZero(sleepOf(lifecycle.PostStart))
}

func hasStopSignal(lifecycle *v1.Lifecycle) bool { return lifecycle.StopSignal != nil }

// sleepOf is the sleep of a hook; nil: it has none, or there is no hook.
func sleepOf(hook *v1.LifecycleHandler) *v1.SleepAction {
	if hook == nil {
		return nil
	}
	return hook.Sleep
}
