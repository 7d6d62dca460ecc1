package validation_test

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// The functions below are a handwritten version of the same rules. Like the API server they create the path
// of each field, even if there is no error. They handle only the fields in the pods of the benchmarks.

// plainValidate is a handwritten ValidatePodTermination for main containers.
func plainValidate(s *v1.PodSpec, path *field.Path) (errs field.ErrorList) {
	if s.TerminationGracePeriodSeconds == nil {
		return append(errs, field.Required(path.Child("terminationGracePeriodSeconds"), ""))
	}
	for i := range s.Containers {
		c, at := &s.Containers[i], path.Child("containers").Index(i)
		if c.Lifecycle != nil {
			errs = append(errs, plainLifecycle(c.Lifecycle, s, at.Child("lifecycle"))...)
		}
		errs = append(errs, plainProbe(c.LivenessProbe, at.Child("livenessProbe"))...)
		errs = append(errs, plainProbe(c.StartupProbe, at.Child("startupProbe"))...)
		errs = append(errs, plainProbe(c.ReadinessProbe, at.Child("readinessProbe"))...)
		if c.ReadinessProbe != nil && c.ReadinessProbe.TerminationGracePeriodSeconds != nil {
			errs = append(errs, field.Invalid(at.Child("readinessProbe", "terminationGracePeriodSeconds"), *c.ReadinessProbe.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
		}
	}
	return errs
}

// plainLifecycle is a handwritten check of a preStop hook and a stop signal.
func plainLifecycle(lifecycle *v1.Lifecycle, s *v1.PodSpec, path *field.Path) (errs field.ErrorList) {
	if lifecycle.PreStop != nil {
		errs = append(errs, plainHook(lifecycle.PreStop, *s.TerminationGracePeriodSeconds, path.Child("preStop"))...)
	}
	if signal := lifecycle.StopSignal; signal != nil {
		at := path.Child("stopSignal")
		switch {
		case s.OS == nil || s.OS.Name == "":
			errs = append(errs, field.Forbidden(at, "may not be set for containers with empty `spec.os.name`"))
		case !slices.Contains([]v1.Signal{v1.SIGKILL, v1.SIGQUIT, v1.SIGTERM, v1.SIGINT, v1.SIGHUP}, *signal):
			errs = append(errs, field.NotSupported(at, *signal, []v1.Signal{}))
		}
	}
	return errs
}

// plainHook is a handwritten check of a hook.
func plainHook(hook *v1.LifecycleHandler, grace int64, path *field.Path) (errs field.ErrorList) {
	if hook.Exec != nil {
		if at := path.Child("exec", "command"); len(hook.Exec.Command) == 0 {
			errs = append(errs, field.Required(at, ""))
		}
	}
	if hook.HTTPGet != nil {
		errs = append(errs, plainRequest(hook.HTTPGet, path.Child("httpGet"))...)
	}
	if hook.Sleep != nil {
		if at := path.Child("sleep"); hook.Sleep.Seconds < 0 || hook.Sleep.Seconds > grace {
			errs = append(errs, field.Invalid(at, hook.Sleep.Seconds, fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", grace)))
		}
	}
	return errs
}

// plainRequest is a handwritten check of the request of an httpGet hook.
func plainRequest(get *v1.HTTPGetAction, path *field.Path) (errs field.ErrorList) {
	if get.Path == "" {
		errs = append(errs, field.Required(path.Child("path"), ""))
	}
	if at := path.Child("port"); get.Port.Type == intstr.Int {
		for _, text := range apivalidation.IsValidPortNum(get.Port.IntValue()) {
			errs = append(errs, field.Invalid(at, get.Port.IntValue(), text))
		}
	}
	if get.Scheme != v1.URISchemeHTTP && get.Scheme != v1.URISchemeHTTPS {
		errs = append(errs, field.NotSupported(path.Child("scheme"), get.Scheme, []v1.URIScheme{v1.URISchemeHTTP, v1.URISchemeHTTPS}))
	}
	return errs
}

// plainProbe is a handwritten check of a probe's grace period.
func plainProbe(p *v1.Probe, path *field.Path) (errs field.ErrorList) {
	if p == nil || p.TerminationGracePeriodSeconds == nil {
		return nil
	}
	if *p.TerminationGracePeriodSeconds <= 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *p.TerminationGracePeriodSeconds, "must be greater than 0"))
	}
	return errs
}

// plainDrop checks for each feature whether the stored spec uses it, even if the feature is on.
func plainDrop(s, old *v1.PodSpec, sleepOn, signalsOn bool) {
	sleeps := func(l *v1.Lifecycle) bool { return l.PreStop != nil && l.PreStop.Sleep != nil }
	signals := func(l *v1.Lifecycle) bool { return l.StopSignal != nil }
	if used := plainUses(old, sleeps); !sleepOn && !used {
		for i := range s.Containers {
			if l := s.Containers[i].Lifecycle; l != nil && sleeps(l) {
				l.PreStop.Sleep = nil
			}
		}
	}
	if used := plainUses(old, signals); !signalsOn && !used {
		for i := range s.Containers {
			if l := s.Containers[i].Lifecycle; l != nil {
				l.StopSignal = nil
			}
		}
	}
}

// plainUses reports whether a container of the spec has a lifecycle that uses a feature.
func plainUses(s *v1.PodSpec, has func(*v1.Lifecycle) bool) (used bool) {
	if s == nil {
		return false
	}
	for i := range s.Containers {
		if l := s.Containers[i].Lifecycle; l != nil && has(l) {
			used = true
		}
	}
	return used
}

// plainWarn is a handwritten WarnPodTermination for main containers.
func plainWarn(s *v1.PodSpec, path *field.Path) (texts []string) {
	grace := *s.TerminationGracePeriodSeconds
	for i := range s.Containers {
		c, at := &s.Containers[i], path.Child("containers").Index(i)
		if c.Lifecycle == nil || c.Lifecycle.PreStop == nil {
			continue
		}
		hook, hookAt := c.Lifecycle.PreStop, at.Child("lifecycle", "preStop")
		if hook.TCPSocket != nil {
			texts = append(texts, fmt.Sprintf("%s: is deprecated", hookAt.Child("tcpSocket")))
		}
		if grace < 2 {
			texts = append(texts, fmt.Sprintf("%s: has no room in %d", hookAt, grace))
		}
		if hook.Sleep != nil && hook.Sleep.Seconds >= grace {
			texts = append(texts, fmt.Sprintf("%s: %d uses up %d", hookAt.Child("sleep"), hook.Sleep.Seconds, grace))
		}
		for name, p := range map[string]*v1.Probe{"livenessProbe": c.LivenessProbe, "startupProbe": c.StartupProbe} {
			if hook.Sleep != nil && p != nil && p.TerminationGracePeriodSeconds != nil && hook.Sleep.Seconds >= *p.TerminationGracePeriodSeconds {
				texts = append(texts, fmt.Sprintf("%s: %d is used up", at.Child(name), *p.TerminationGracePeriodSeconds))
			}
		}
	}
	return texts
}

// plainNodeShutdown is a handwritten ValidateNodeShutdown for a list by priority.
func plainNodeShutdown(cfg plan.Config) error {
	var errs []error
	if len(cfg.ShutdownGracePeriodByPodPriority) > 0 && cfg.ShutdownGracePeriod.Duration != 0 {
		errs = append(errs, errors.New("both are set"))
	}
	seen, sum := map[int32]bool{}, int64(0)
	for i, p := range cfg.ShutdownGracePeriodByPodPriority {
		if p.ShutdownGracePeriodSeconds < 0 {
			errs = append(errs, fmt.Errorf("[%d] is negative", i))
		}
		if seen[p.Priority] {
			errs = append(errs, fmt.Errorf("[%d] is there twice", i))
		}
		seen[p.Priority] = true
		sum += p.ShutdownGracePeriodSeconds
	}
	if sum < 0 {
		errs = append(errs, errors.New("is too much"))
	}
	return errors.Join(errs...)
}
