package featuregates_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/validation"
	"github.com/kubegrace/kubegrace/validation/featuregates"
)

// Read the gates once, after parsing the flags.
func ExampleOptions() {
	gate := featuregate.NewFeatureGate()
	for _, add := range []func(featuregate.MutableFeatureGate) error{lifecycle.AddFeatureGates, shutdown.AddFeatureGates} {
		if err := add(gate); err != nil {
			fmt.Println(err)
		}
	}
	if err := gate.Set("ContainerStopSignals=false"); err != nil { // --feature-gates
		fmt.Println(err)
	}
	opts := featuregates.Options(gate)

	spec := &v1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To(int64(30)),
		Containers:                    []v1.Container{{Name: "web", Lifecycle: &v1.Lifecycle{StopSignal: ptr.To(v1.SIGQUIT)}}},
	}
	fmt.Println(validation.ValidatePodTermination(spec, opts, field.NewPath("spec")).ToAggregate())
	validation.DropDisabledFields(spec, nil, opts)
	fmt.Println(validation.ValidatePodTermination(spec, opts, field.NewPath("spec")).ToAggregate())
	// Output:
	// spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set when feature gate ContainerStopSignals is disabled
	// <nil>
}
