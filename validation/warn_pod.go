package validation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// WarnPodTermination returns warnings about values that are valid but probably not intended: a
// grace period of 0 or less, a sleep as long as the grace period, a hook that has no time or
// that no kubelet runs, and the preStop hook of a sidecar. Each warning begins with the path
// of its field. path is the path of the spec. The result is nil if there are none.
func WarnPodTermination(spec *v1.PodSpec, path *field.Path) []string {
	if spec == nil {
		return nil
	}
	w := warner{grace: spec.TerminationGracePeriodSeconds}
	root := lazyPath{root: path}
	w.warnGrace(root.child(fieldGrace))
	for i := range spec.Containers {
		w.warnHooks(&spec.Containers[i], root.item(fieldContainers, i))
	}
	for i := range spec.InitContainers {
		if at := root.item(fieldInitContainers, i); isSidecar(&spec.InitContainers[i]) {
			w.warnHooks(&spec.InitContainers[i], at)
			w.warnSidecarHook(&spec.InitContainers[i], at)
		}
	}
	return w.texts
}

// warner collects the warnings of one spec.
type warner struct {
	grace *int64 // of the pod
	texts []string
}

func (w *warner) warn(at lazyPath, format string, args ...any) {
	w.texts = append(w.texts, at.fieldPath().String()+": "+fmt.Sprintf(format, args...))
}

// warnGrace warns about a grace period of 0 or less.
func (w *warner) warnGrace(at lazyPath) {
	switch {
	case w.grace == nil: // an error of ValidatePodTermination
	case *w.grace < 0:
		w.warn(at, "must be >= 0; negative values are invalid and will be treated as 1")
	case *w.grace == 0:
		w.warn(at, "0 deletes the pod immediately: the API server does not wait for its containers, and their hooks have no time (k/k#120671)")
	}
}

// warnHooks warns about the hooks of a main container or a sidecar.
func (w *warner) warnHooks(container *v1.Container, at lazyPath) {
	if container.Lifecycle == nil {
		return
	}
	lifecycle := at.child(fieldLifecycle)
	if hook := container.Lifecycle.PostStart; hook != nil {
		w.warnTCPSocket(hook, lifecycle.child(fieldPostStart))
	}
	hook := container.Lifecycle.PreStop
	if hook == nil {
		return
	}
	preStop := lifecycle.child(fieldPreStop)
	w.warnTCPSocket(hook, preStop)
	w.warnLongHook(hook, preStop)
	w.warnLongSleepForProbe(hook, container.LivenessProbe, at, fieldLivenessProbe)
	w.warnLongSleepForProbe(hook, container.StartupProbe, at, fieldStartupProbe)
}

// warnTCPSocket warns about a tcpSocket hook, which no kubelet runs.
func (w *warner) warnTCPSocket(hook *v1.LifecycleHandler, at lazyPath) {
	if hook.TCPSocket != nil {
		w.warn(at.child(fieldTCPSocket), "is deprecated: the kubelet does not run it, and the hook fails")
	}
}

// warnLongHook warns about a preStop hook that leaves no time for the stop of its container: a
// sleep as long as the pod's grace period, and any hook if the grace period is shorter than
// [graceperiod.MinimumContainerSeconds].
func (w *warner) warnLongHook(hook *v1.LifecycleHandler, at lazyPath) {
	needsNoTime := hook.Sleep != nil && hook.Sleep.Seconds == 0
	switch {
	case w.grace == nil || needsNoTime: // nothing to warn about
	case *w.grace < graceperiod.MinimumContainerSeconds:
		w.warn(at, "has no time, terminationGracePeriodSeconds is %d", *w.grace)
	case hook.Sleep != nil && hook.Sleep.Seconds >= *w.grace:
		w.warn(at.child(fieldSleep), "%d is not less than terminationGracePeriodSeconds (%d): the container has only %d s to stop",
			hook.Sleep.Seconds, *w.grace, graceperiod.MinimumContainerSeconds)
	}
}

// warnLongSleepForProbe warns about a preStop sleep that is at least as long as the grace period of
// a probe. When that probe fails, its grace period replaces the pod's, and the sleep uses it up.
func (w *warner) warnLongSleepForProbe(hook *v1.LifecycleHandler, probe *v1.Probe, at lazyPath, probeField string) {
	seconds := graceOf(probe)
	if seconds == nil || hook.Sleep == nil || hook.Sleep.Seconds < *seconds {
		return
	}
	w.warn(at.child(probeField).child(fieldGrace), "%d is not more than the preStop sleep of %d s: when this probe fails, the container has only %d s to stop",
		*seconds, hook.Sleep.Seconds, graceperiod.MinimumContainerSeconds)
}

// warnSidecarHook warns that the preStop hook of a sidecar runs earlier than one may expect (KEP-753).
func (w *warner) warnSidecarHook(container *v1.Container, at lazyPath) {
	if container.Lifecycle == nil || container.Lifecycle.PreStop == nil {
		return
	}
	w.warn(at.child(fieldLifecycle).child(fieldPreStop), "runs when the pod begins to terminate, together with the hooks of the main containers, not when the sidecar is stopped")
}
