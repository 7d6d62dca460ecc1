//go:build go1.25

package validation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/validation"
)

// The API server accepts each of these specs, even if a spec is useless. So they have no errors.
func TestValidPods(t *testing.T) {
	for name, s := range map[string]*v1.PodSpec{
		"empty":                      spec(),
		"negative grace period":      spec(withGrace(-1)), // older API servers stored them
		"grace period of 0":          spec(withGrace(0)),
		"containers":                 spec(withContainer(v1.Container{}), withHook(sleep(5)), withHook(exec("true"))),
		"init container and sidecar": spec(withInit(v1.Container{}), withInit(sidecar(preStop(sleep(1))))),
		"ephemeral":                  spec(withEphemeral(nil)),
		"signal and hook":            spec(withContainer(v1.Container{Lifecycle: &v1.Lifecycle{StopSignal: ptr.To(v1.SIGUSR1), PreStop: sleep(3)}})),
	} {
		require.Nil(t, validate(s), name)
	}
}

// The API server sets a default before it validates, so a missing grace period is an error. So is a
// missing spec.
func TestTheGracePeriodIsRequired(t *testing.T) {
	requireErrors(t, validate(&v1.PodSpec{}), "spec.terminationGracePeriodSeconds: Required value")
	requireErrors(t, validation.ValidatePodTermination(&v1.PodSpec{}, validation.Options{}, nil), "terminationGracePeriodSeconds: Required value")
	requireErrors(t, validate(nil), "spec: Required value")
}

// Only main containers and sidecars may have a lifecycle, and only their lifecycles are checked further. In other
// containers an empty lifecycle is an error too.
func TestLifecycleByKindOfContainer(t *testing.T) {
	never := v1.Container{RestartPolicy: ptr.To(v1.ContainerRestartPolicy("Never")), Lifecycle: preStop(sleep(1))}
	requireErrors(t, validate(spec(
		withInit(v1.Container{Lifecycle: &v1.Lifecycle{}}),
		withInit(never),
		withInit(sidecar(preStop(exec()))),
		withEphemeral(preStop(sleep(1))),
		withEphemeral(&v1.Lifecycle{}),
	)),
		"spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
		"spec.initContainers[1].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
		"spec.initContainers[2].lifecycle.preStop.exec.command: Required value",
		"spec.ephemeralContainers[0].lifecycle: Forbidden: cannot be set for an Ephemeral Container",
		"spec.ephemeralContainers[1].lifecycle: Forbidden: cannot be set for an Ephemeral Container")
}

// All errors of a spec are returned in its order.
func TestAllErrorsAreReturned(t *testing.T) {
	bad := v1.Container{
		Lifecycle:      &v1.Lifecycle{PostStart: &v1.LifecycleHandler{}, PreStop: sleep(99), StopSignal: ptr.To(v1.Signal("SIGNONE"))},
		LivenessProbe:  probe(0),
		ReadinessProbe: probe(1),
		StartupProbe:   probe(0),
	}
	badSidecar := sidecar(bad.Lifecycle)
	badSidecar.StartupProbe = probe(0)
	errs := validate(spec(withContainer(v1.Container{}), withContainer(bad), withInit(badSidecar), withEphemeral(bad.Lifecycle)))
	var paths []string
	for _, err := range errs {
		paths = append(paths, err.Field)
	}
	require.Equal(t, []string{
		"spec.containers[1].lifecycle.postStart",
		"spec.containers[1].lifecycle.preStop.sleep",
		"spec.containers[1].lifecycle.stopSignal",
		"spec.containers[1].livenessProbe.terminationGracePeriodSeconds",
		"spec.containers[1].readinessProbe.terminationGracePeriodSeconds",
		"spec.containers[1].startupProbe.terminationGracePeriodSeconds",
		"spec.initContainers[0].lifecycle.postStart",
		"spec.initContainers[0].lifecycle.preStop.sleep",
		"spec.initContainers[0].lifecycle.stopSignal",
		"spec.initContainers[0].startupProbe.terminationGracePeriodSeconds",
		"spec.ephemeralContainers[0].lifecycle",
	}, paths)
}

// The spec may be part of a larger object, such as a template. The errors have the path from its root.
func TestPathsBeginWithThatOfTheSpec(t *testing.T) {
	path := field.NewPath("items").Index(3).Child("template", "spec")
	errs := validation.ValidatePodTermination(spec(withHook(exec())), validation.Options{}, path)
	requireErrors(t, errs, "items[3].template.spec.containers[0].lifecycle.preStop.exec.command: Required value")
}
