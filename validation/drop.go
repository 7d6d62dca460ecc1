package validation

import (
	"iter"

	v1 "k8s.io/api/core/v1"
)

// DropDisabledFields removes from spec, in place, the sleep hooks and the stop
// signals that opts has off, from containers of every kind, as the API server does
// before it validates. If old, the stored spec, uses such a field anywhere, all of
// them stay; nil means that there is none. A hook that has nothing left becomes
// nil, and so does a lifecycle. Sleeps of zero seconds are not dropped for being
// that. A nil spec is left alone.
func DropDisabledFields(spec, old *v1.PodSpec, opts Options) {
	opts = opts.ForUpdate(old)
	if opts.NoSleepAction {
		drop(spec, dropSleep)
	}
	if opts.NoStopSignals {
		drop(spec, func(lifecycle *v1.Lifecycle) { lifecycle.StopSignal = nil })
	}
}

// drop puts in the place of each lifecycle what remove leaves of it. What the
// spec points to is not written: containers may share it.
func drop(spec *v1.PodSpec, remove func(*v1.Lifecycle)) {
	for lifecycle := range lifecycles(spec) {
		if *lifecycle == nil {
			continue
		}
		rest := **lifecycle
		remove(&rest)
		switch rest {
		case **lifecycle: // nothing was removed, not even from an empty one
		case v1.Lifecycle{}:
			*lifecycle = nil
		default:
			*lifecycle = &rest
		}
	}
}

// dropSleep takes the sleeps out of both hooks.
func dropSleep(lifecycle *v1.Lifecycle) {
	lifecycle.PreStop, lifecycle.PostStart = withoutSleep(lifecycle.PreStop), withoutSleep(lifecycle.PostStart)
}

// withoutSleep gives what is left of a hook; nil: nothing.
func withoutSleep(hook *v1.LifecycleHandler) *v1.LifecycleHandler {
	if sleepOf(hook) == nil {
		return hook
	}
	rest := *hook
	rest.Sleep = nil
	if rest == (v1.LifecycleHandler{}) {
		return nil
	}
	return &rest
}

// lifecycles gives the place of the lifecycle, which may hold nil, of every
// container of any kind; a nil spec has none.
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
