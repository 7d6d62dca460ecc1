package validation

import (
	"iter"

	v1 "k8s.io/api/core/v1"
)

// DropDisabledFields removes sleep hooks and stop signals from all containers of spec, in
// place, if their feature is off in opts. The API server does so before it validates. old is
// the stored spec, or nil for a new pod: if any container of old uses a feature, its fields
// are not removed. Hooks and lifecycles that become empty are set to nil. NoZeroSleep removes
// nothing. spec may be nil.
func DropDisabledFields(spec, old *v1.PodSpec, opts Options) {
	opts = opts.ForUpdate(old)
	if opts.NoSleepAction {
		drop(spec, dropSleep)
	}
	if opts.NoStopSignals {
		drop(spec, func(lifecycle *v1.Lifecycle) { lifecycle.StopSignal = nil })
	}
}

// drop calls remove, which removes fields, for the lifecycle of each container. A lifecycle that
// becomes empty is set to nil. remove gets a copy, because several of the caller's containers may
// share one lifecycle.
func drop(spec *v1.PodSpec, remove func(*v1.Lifecycle)) {
	for lifecycle := range lifecycles(spec) {
		if *lifecycle == nil {
			continue
		}
		given := **lifecycle
		reduced := given
		remove(&reduced)
		switch reduced {
		case given: // nothing was removed: an empty lifecycle stays
		case v1.Lifecycle{}:
			*lifecycle = nil
		default:
			*lifecycle = &reduced
		}
	}
}

// dropSleep removes the sleep handler from both hooks of a lifecycle.
func dropSleep(lifecycle *v1.Lifecycle) {
	lifecycle.PreStop, lifecycle.PostStart = withoutSleep(lifecycle.PreStop), withoutSleep(lifecycle.PostStart)
}

// withoutSleep returns a hook without its sleep, or nil if it has no other handler.
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

// lifecycles yields a pointer to the lifecycle field, which may be nil, of each container of
// any kind. spec may be nil.
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
