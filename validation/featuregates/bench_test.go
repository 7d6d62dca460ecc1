package featuregates_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/validation"
	"github.com/kubegrace/kubegrace/validation/featuregates"
)

// gateOfAKubelet returns a gate with the features of validation and 150 others, about as many as
// in a kubelet.
func gateOfAKubelet(b *testing.B) featuregate.FeatureGate {
	on := map[string]bool{
		"PodLifecycleSleepAction": true, "PodLifecycleSleepActionAllowZero": true, "ContainerStopSignals": true,
		"GracefulNodeShutdown": true, "GracefulNodeShutdownBasedOnPodPriority": true,
	}
	for i := range 150 {
		on[fmt.Sprintf("Feature%d", i)] = true
	}
	return gateWith(b, on)
}

// tenContainers returns a valid pod with ten containers, each with a hook and a stop signal.
func tenContainers() *v1.PodSpec {
	spec := &v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(30)), OS: &v1.PodOS{Name: v1.Linux}}
	for range 10 {
		spec.Containers = append(spec.Containers, v1.Container{Lifecycle: &v1.Lifecycle{
			PreStop:    &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 5}},
			StopSignal: ptr.To(v1.SIGQUIT),
		}})
	}
	return spec
}

// BenchmarkAdmit drops the disabled fields of one pod and validates it. "plain" reads the gates by
// name for each pod, as the API server does. "again" calls Options for each pod, which the package
// documentation advises against.
func BenchmarkAdmit(b *testing.B) {
	gate, spec, path := gateOfAKubelet(b), tenContainers(), field.NewPath("spec")
	once := featuregates.Options(gate)
	for _, way := range []struct {
		name    string
		options func() validation.Options
	}{
		{"plain", func() validation.Options {
			return validation.Options{
				NoSleepAction: !gate.Enabled("PodLifecycleSleepAction"),
				NoZeroSleep:   !gate.Enabled("PodLifecycleSleepActionAllowZero"),
				NoStopSignals: !gate.Enabled("ContainerStopSignals"),
			}
		}},
		{"kubegrace", func() validation.Options { return once }},
		{"again", func() validation.Options { return featuregates.Options(gate) }},
	} {
		b.Run("way="+way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				opts := way.options()
				validation.DropDisabledFields(spec, nil, opts)
				if errs := validation.ValidatePodTerminationUpdate(spec, nil, opts, path); errs != nil {
					b.Fatal(errs)
				}
			}
		})
	}
}
