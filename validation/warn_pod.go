package validation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// WarnPodTermination says what is allowed in the fields that decide how a pod
// ends, and still not what one would want: a grace period of 0 or less, a sleep
// that uses up the grace, a hook that has no room in it or that no kubelet runs,
// and a sidecar whose preStop hook runs from the start of the termination. Each
// warning begins with the path of its field; path is that of the spec. Nil means
// that there is nothing to say.
func WarnPodTermination(spec *v1.PodSpec, path *field.Path) []string {
	if spec == nil {
		return nil
	}
	w := warner{grace: spec.TerminationGracePeriodSeconds}
	root := place{root: path}
	w.podGrace(root.child(fieldGrace))
	for i := range spec.Containers {
		w.container(&spec.Containers[i], root.item(fieldContainers, i))
	}
	for i := range spec.InitContainers {
		if at := root.item(fieldInitContainers, i); isSidecar(&spec.InitContainers[i]) {
			w.container(&spec.InitContainers[i], at)
			w.sidecar(&spec.InitContainers[i], at)
		}
	}
	return w.texts
}

// warner collects the warnings of one spec. It is apart from checker because
// nothing in it is wrong, and what is wrong needs no warning.
type warner struct {
	grace *int64 // of the pod
	texts []string
}

// warn adds a warning about the field at a place.
func (w *warner) warn(at place, format string, args ...any) {
	w.texts = append(w.texts, at.path().String()+": "+fmt.Sprintf(format, args...))
}

// podGrace speaks of the values that validation lets pass and that do not mean
// what they seem to. Without a grace there is an error instead.
func (w *warner) podGrace(at place) {
	switch {
	case w.grace == nil:
	case *w.grace < 0:
		w.warn(at, "must be >= 0; negative values are invalid and will be treated as 1")
	case *w.grace == 0:
		w.warn(at, "0 deletes the pod at once: its object does not wait for its containers, and their hooks have no time (k/k#120671)")
	}
}

// container speaks of the hooks of a container that runs beside others. Only
// its preStop hook spends the grace.
func (w *warner) container(container *v1.Container, at place) {
	if container.Lifecycle == nil {
		return
	}
	lifecycle := at.child(fieldLifecycle)
	if hook := container.Lifecycle.PostStart; hook != nil {
		w.neverRuns(hook, lifecycle.child(fieldPostStart))
	}
	hook := container.Lifecycle.PreStop
	if hook == nil {
		return
	}
	preStop := lifecycle.child(fieldPreStop)
	w.neverRuns(hook, preStop)
	w.room(hook, preStop)
	w.roomOfProbe(hook, container.LivenessProbe, at, fieldLivenessProbe)
	w.roomOfProbe(hook, container.StartupProbe, at, fieldStartupProbe)
}

// neverRuns speaks of a handler that validation accepts and no kubelet knows.
func (w *warner) neverRuns(hook *v1.LifecycleHandler, at place) {
	if hook.TCPSocket != nil {
		w.warn(at.child(fieldTCPSocket), "is deprecated: the kubelet does not run it, the hook fails")
	}
}

// room compares a preStop hook with the pod's grace, of which the hook and the
// container's own end are both part. How long an exec or a request takes nobody
// knows, but within less than the floor of a stop it will hardly do. A sleep of 0
// needs no time.
func (w *warner) room(hook *v1.LifecycleHandler, at place) {
	switch {
	case w.grace == nil || hook.Sleep != nil && hook.Sleep.Seconds == 0:
	case *w.grace < graceperiod.MinimumContainerSeconds:
		w.warn(at, "has no room, terminationGracePeriodSeconds is %d", *w.grace)
	case hook.Sleep != nil && hook.Sleep.Seconds >= *w.grace:
		w.warn(at.child(fieldSleep), "%d uses up terminationGracePeriodSeconds (%d): the container is left %d s to end",
			hook.Sleep.Seconds, *w.grace, graceperiod.MinimumContainerSeconds)
	}
}

// roomOfProbe compares a sleep with the grace of a probe that replaces the pod's
// when the probe is why the container is killed.
func (w *warner) roomOfProbe(hook *v1.LifecycleHandler, probe *v1.Probe, at place, name string) {
	seconds := graceOf(probe)
	if seconds == nil || hook.Sleep == nil || hook.Sleep.Seconds < *seconds {
		return
	}
	w.warn(at.child(name).child(fieldGrace), "%d is used up by the preStop sleep of %d s when this probe fails: the container is left %d s to end",
		*seconds, hook.Sleep.Seconds, graceperiod.MinimumContainerSeconds)
}

// sidecar speaks of when its preStop hook runs (KEP-753).
func (w *warner) sidecar(container *v1.Container, at place) {
	if container.Lifecycle == nil || container.Lifecycle.PreStop == nil {
		return
	}
	w.warn(at.child(fieldLifecycle).child(fieldPreStop), "runs when the pod begins to terminate, beside the hooks of the main containers, and not when the sidecar's turn to stop has come")
}
