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

// tenContainers returns a valid pod with ten containers, each with a hook, a stop signal, and probes with a
// grace period.
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

// compareWithHandwritten measures the handwritten rules and the package.
func compareWithHandwritten(b *testing.B, name string, plain, kubegrace func(b *testing.B)) {
	b.Helper()
	for _, way := range []struct {
		name string
		call func(b *testing.B)
	}{{"plain", plain}, {"kubegrace", kubegrace}} {
		b.Run(name+"way="+way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				way.call(b)
			}
		})
	}
}

// requireFound fails the benchmark unless there are as many errors as expected.
func requireFound(b *testing.B, want int, errs field.ErrorList) {
	if len(errs) != want {
		b.Fatal(errs)
	}
}

func BenchmarkValidatePodTermination(b *testing.B) {
	path, opts := field.NewPath("spec"), validation.Options{}
	invalid := tenContainers()
	invalid.TerminationGracePeriodSeconds, invalid.OS = ptr.To(int64(1)), nil
	for _, pod := range []struct {
		name string
		spec *v1.PodSpec
		errs int
	}{{"pod=valid/", tenContainers(), 0}, {"pod=invalid/", invalid, 14}} {
		compareWithHandwritten(b, pod.name,
			func(b *testing.B) { requireFound(b, pod.errs, plainValidate(pod.spec, path)) },
			func(b *testing.B) { requireFound(b, pod.errs, validation.ValidatePodTermination(pod.spec, opts, path)) })
	}
}

func BenchmarkDropDisabledFields(b *testing.B) {
	s, off := tenContainers(), gateMap{}.resolve()
	compareWithHandwritten(b, "features=on/",
		func(*testing.B) { plainDrop(s, nil, true, true) },
		func(*testing.B) { validation.DropDisabledFields(s, nil, validation.Options{}) })
	compareWithHandwritten(b, "features=off-but-used/",
		func(*testing.B) { plainDrop(s, s, false, false) },
		func(*testing.B) { validation.DropDisabledFields(s, s, off) })
}

func BenchmarkWarnPodTermination(b *testing.B) {
	s, path := tenContainers(), field.NewPath("spec")
	compareWithHandwritten(b, "",
		func(*testing.B) { plainWarn(s, path) },
		func(*testing.B) { validation.WarnPodTermination(s, path) })
}

func BenchmarkValidateNodeShutdown(b *testing.B) {
	var cfg plan.Config
	for i := range 8 {
		cfg.ShutdownGracePeriodByPodPriority = append(cfg.ShutdownGracePeriodByPodPriority,
			plan.PodPriorityGracePeriod{Priority: int32(i) * 1000, ShutdownGracePeriodSeconds: 10})
	}
	valid := func(b *testing.B, err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	compareWithHandwritten(b, "",
		func(b *testing.B) { valid(b, plainNodeShutdown(cfg)) },
		func(b *testing.B) { valid(b, validation.ValidateNodeShutdown(cfg, validation.Options{})) })
}
