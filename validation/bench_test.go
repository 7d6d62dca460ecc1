package validation_test

import (
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
)

// tenContainers is a valid pod that uses everything: of ten containers each has a
// hook, a stop signal and probes with a grace of their own.
func tenContainers() *v1.PodSpec {
	hooks := []*v1.LifecycleHandler{sleep(5), exec("sh", "-c", "quit"), httpGet("/quit", intstr.FromInt32(8080), v1.URISchemeHTTP)}
	s := spec()
	for i := range 10 {
		s.Containers = append(s.Containers, v1.Container{
			Name:          strconv.Itoa(i),
			Lifecycle:     &v1.Lifecycle{PreStop: hooks[i%len(hooks)], StopSignal: ptr.To(v1.SIGQUIT)},
			LivenessProbe: probe(10), StartupProbe: probe(20), ReadinessProbe: &v1.Probe{},
		})
	}
	return s
}

func BenchmarkValidatePodTermination(b *testing.B) {
	valid, path, opts := tenContainers(), field.NewPath("spec"), validation.Options{}
	b.Run("valid", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if errs := validation.ValidatePodTermination(valid, opts, path); errs != nil {
				b.Fatal(errs)
			}
		}
	})
	b.Run("valid, paths built on the way", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buildPaths(valid, path, func(*field.Path) {})
		}
	})
	b.Run("invalid", func(b *testing.B) {
		b.ReportAllocs()
		none := tenContainers()
		none.TerminationGracePeriodSeconds, none.OS = ptr.To(int64(1)), nil
		for b.Loop() {
			if errs := validation.ValidatePodTermination(none, opts, path); len(errs) != 14 {
				b.Fatal(errs)
			}
		}
	})
}

// buildPaths does nothing but make the paths that a validation would hand down
// which makes them beforehand.
func buildPaths(s *v1.PodSpec, path *field.Path, use func(*field.Path)) {
	for i := range s.Containers {
		container := path.Child("containers").Index(i)
		hook := container.Child("lifecycle").Child("preStop")
		switch handler := s.Containers[i].Lifecycle.PreStop; {
		case handler.Exec != nil:
			use(hook.Child("exec").Child("command"))
		case handler.HTTPGet != nil:
			use(hook.Child("httpGet").Child("port"))
		default:
			use(hook.Child("sleep"))
		}
		use(container.Child("lifecycle").Child("stopSignal"))
		for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
			use(container.Child(name).Child("terminationGracePeriodSeconds"))
		}
	}
}

func BenchmarkDropDisabledFields(b *testing.B) {
	s, off := tenContainers(), gates{}.options()
	b.Run("nothing is off", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			validation.DropDisabledFields(s, nil, validation.Options{})
		}
	})
	b.Run("all is off and was used before", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			validation.DropDisabledFields(s, s, off)
		}
	})
}

func BenchmarkWarnPodTermination(b *testing.B) {
	s, path := tenContainers(), field.NewPath("spec")
	b.ReportAllocs()
	for b.Loop() {
		validation.WarnPodTermination(s, path)
	}
}

func BenchmarkValidateNodeShutdown(b *testing.B) {
	var cfg plan.Config
	for i := range 8 {
		cfg.ShutdownGracePeriodByPodPriority = append(cfg.ShutdownGracePeriodByPodPriority,
			plan.PodPriorityGracePeriod{Priority: int32(i) * 1000, ShutdownGracePeriodSeconds: 10})
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := validation.ValidateNodeShutdown(cfg, validation.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
