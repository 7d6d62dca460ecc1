package validation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/validation"
)

// update returns the errors of an update of the stored spec old to s, with all features on.
func update(s, old *v1.PodSpec) field.ErrorList {
	return validation.ValidatePodTerminationUpdate(s, old, validation.Options{}, field.NewPath("spec"))
}

// An update may keep the features that the stored pod uses, even if they are off.
func TestUpdateKeepsFeaturesThatTheStoredPodUses(t *testing.T) {
	stored := spec(withContainer(v1.Container{Name: "web", Lifecycle: &v1.Lifecycle{PreStop: sleep(0), StopSignal: ptr.To(v1.SIGINT)}}))
	path, off := field.NewPath("spec"), gateMap{}.resolve()
	require.Nil(t, validation.ValidatePodTerminationUpdate(stored.DeepCopy(), stored, off, path))
	requireErrors(t, validation.ValidatePodTerminationUpdate(stored, nil, off, path),
		hookPath+".sleep: Forbidden: may not be set when feature gate PodLifecycleSleepAction is disabled",
		"spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set when feature gate ContainerStopSignals is disabled")
}

// The grace period of a stored pod may not change. The only exception is a negative one, which may become
// 1.
func TestUpdateOfTheGracePeriod(t *testing.T) {
	unset := spec()
	unset.TerminationGracePeriodSeconds = nil
	for _, c := range []struct {
		is, was *v1.PodSpec // the new spec and the stored one
		want    []string    // the errors
	}{
		{spec(), spec(), nil},
		{spec(withGrace(-5)), spec(withGrace(-5)), nil},
		{spec(withGrace(1)), spec(withGrace(-5)), nil},
		{spec(withGrace(2)), spec(withGrace(-5)), []string{"spec.terminationGracePeriodSeconds: Forbidden: may not be changed from -5 to 2; only a negative value may become 1"}},
		{spec(withGrace(-6)), spec(withGrace(-5)), []string{"spec.terminationGracePeriodSeconds: Forbidden: may not be changed from -5 to -6; only a negative value may become 1"}},
		{spec(withGrace(1)), spec(withGrace(0)), []string{"spec.terminationGracePeriodSeconds: Forbidden: may not be changed from 0 to 1; only a negative value may become 1"}},
		{spec(withGrace(1)), unset, []string{"spec.terminationGracePeriodSeconds: Forbidden: may not be changed from unset to 1; only a negative value may become 1"}},
		{unset, spec(), []string{
			"spec.terminationGracePeriodSeconds: Required value",
			"spec.terminationGracePeriodSeconds: Forbidden: may not be changed from 30 to unset; only a negative value may become 1",
		}},
	} {
		requireErrors(t, update(c.is, c.was), c.want...)
	}
}

// Lifecycles and the grace periods of probes may not change: each change is an error. Other fields, such as the image,
// may change, and a container is compared with the stored one of its name even if it has moved.
func TestUpdateOfContainers(t *testing.T) {
	was := v1.Container{Name: "web", Lifecycle: preStop(sleep(5)), LivenessProbe: probe(3), StartupProbe: &v1.Probe{}}
	moved := was.DeepCopy()
	moved.Image = "nginx:new"
	require.Nil(t, update(
		spec(withContainer(v1.Container{Name: "first", Lifecycle: preStop(sleep(1))}), withContainer(*moved)),
		spec(withContainer(was))), "images may change, and containers are compared by name")

	is := v1.Container{Name: "web", Lifecycle: preStop(sleep(6)), ReadinessProbe: probe(1), StartupProbe: probe(9)}
	side := sidecar(nil)
	side.Name = "proxy"
	changed := *side.DeepCopy()
	changed.Lifecycle = signal(v1.SIGINT)
	requireErrors(t, update(spec(withContainer(is), withInit(changed)), spec(withContainer(was), withInit(side))),
		"spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes",
		"spec.containers[0].lifecycle: Forbidden: may not be changed",
		"spec.containers[0].livenessProbe.terminationGracePeriodSeconds: Forbidden: may not be changed from 3 to unset",
		"spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Forbidden: may not be changed from unset to 1",
		"spec.containers[0].startupProbe.terminationGracePeriodSeconds: Forbidden: may not be changed from unset to 9",
		"spec.initContainers[0].lifecycle: Forbidden: may not be changed")
}

// Without a stored spec the update is checked like a new pod.
func TestUpdateWithoutAStoredSpec(t *testing.T) {
	require.Nil(t, update(spec(), nil))
	requireErrors(t, update(nil, spec()), "spec: Required value")
}
