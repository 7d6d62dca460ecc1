package validation

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/features"
)

// FeatureGate answers whether a feature is on; a fork's DefaultFeatureGate is
// one. Where one is taken, nil and a gate that lacks the feature mean its default,
// which is on.
type FeatureGate interface {
	Enabled(key featuregate.Feature) bool
}

// Options says which features a pod may use. The zero value allows none.
type Options struct {
	// AllowSleepAction allows hooks that sleep (PodLifecycleSleepAction, KEP-3960).
	// Without it one is refused rather than left to a kubelet that does not sleep.
	AllowSleepAction bool
	// AllowZeroSleep allows sleeps of zero seconds (PodLifecycleSleepActionAllowZero,
	// KEP-4818). It means nothing without AllowSleepAction.
	AllowZeroSleep bool
	// AllowStopSignals allows stop signals (ContainerStopSignals, KEP-4960).
	AllowStopSignals bool
}

// OptionsFor gives the options for a pod that replaces old; nil means a new pod.
// What the stored pod uses already stays allowed whatever the gate says, so that
// switching a feature off makes no stored object invalid. For new pods the answer
// is always the same: to ask once is enough, and the gate may be slow.
func OptionsFor(gate FeatureGate, old *v1.PodSpec) Options {
	return Options{
		AllowSleepAction: uses(old, hasSleep) || features.Enabled(gate, features.PodLifecycleSleepAction),
		AllowZeroSleep:   uses(old, hasZeroSleep) || features.Enabled(gate, features.PodLifecycleSleepActionAllowZero),
		AllowStopSignals: uses(old, hasStopSignal) || features.Enabled(gate, features.ContainerStopSignals),
	}
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
