package validation

import (
	"iter"

	v1 "k8s.io/api/core/v1"
)

// DropDisabledFields removes the sleep hooks and stop signals from a spec, in place, if
// their feature is off in opts, from containers of every kind. The API server does so
// before it validates. old is the stored spec, nil for a new pod: a feature that old uses
// in any container is not removed from spec. A hook that becomes empty is set to nil, and
// so is a lifecycle. NoZeroSleep removes nothing. A nil spec is not changed.
func DropDisabledFields(spec, old *v1.PodSpec, opts Options) {
	opts = opts.ForUpdate(old)
	if opts.NoSleepAction {
		drop(spec, dropSleep)
	}
	if opts.NoStopSignals {
		drop(spec, func(lifecycle *v1.Lifecycle) { lifecycle.StopSignal = nil })
	}
}

// drop replaces the lifecycle of each container by a copy without the fields that remove
// removes, or by nil if the copy is empty. The lifecycle itself is not changed, because
// containers may share it.
func drop(spec *v1.PodSpec, remove func(*v1.Lifecycle)) {
	for lifecycle := range lifecycles(spec) {
		if *lifecycle == nil {
			continue
		}
		reduced := **lifecycle
		remove(&reduced)
		switch reduced {
		case **lifecycle: // nothing was removed: an empty lifecycle stays
		case v1.Lifecycle{}:
			*lifecycle = nil
		default:
			*lifecycle = &reduced
		}
	}
}

// dropSleep removes the sleep of both hooks.
func dropSleep(lifecycle *v1.Lifecycle) {
	lifecycle.PreStop, lifecycle.PostStart = withoutSleep(lifecycle.PreStop), withoutSleep(lifecycle.PostStart)
}

// withoutSleep returns a hook without its sleep, nil if nothing else is in it.
func withoutSleep(hook *v1.LifecycleHandler) *v1.LifecycleHandler {
	if sleepOf(hook) == nil {
		return hook
	}
	reduced := *hook
	reduced.Sleep = nil
	if reduced == (v1.LifecycleHandler{}) {
		return nil
	}
	return &reduced
}

// lifecycles yields a pointer to the lifecycle field of each container of any kind. The
// field may be nil. A nil spec has no containers.
func lifecycles(spec *v1.PodSpec) iter.Seq[**v1.Lifecycle] {
	return func(yield func(**v1.Lifecycle) bool) {
		if spec == nil {
			return
		}
		for i := range spec.Containers {
			if !yield(&spec.Containers[i].Lifecycle) {
				return
			}
		}
		for i := range spec.InitContainers {
			if !yield(&spec.InitContainers[i].Lifecycle) {
				return
			}
		}
		for i := range spec.EphemeralContainers {
			if !yield(&spec.EphemeralContainers[i].Lifecycle) {
				return
			}
		}
	}
}
