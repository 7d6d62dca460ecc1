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

// The API server accepts each of these specs, even if a spec is useless, so validate returns no error. Where a case sets no
// grace period, spec sets one of 30 s.
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

// A spec without a grace period is an error, because the API server sets the default before it validates. A nil spec is an
// error too. The second call passes a nil path, so the path of its error is only the field's name.
func TestTheGracePeriodIsRequired(t *testing.T) {
	requireErrors(t, validate(&v1.PodSpec{}), "spec.terminationGracePeriodSeconds: Required value")
	requireErrors(t, validation.ValidatePodTermination(&v1.PodSpec{}, validation.Options{}, nil), "terminationGracePeriodSeconds: Required value")
	requireErrors(t, validate(nil), "spec: Required value")
}

// A lifecycle, even an empty one, is an error in an ephemeral container and in an init container that is no sidecar, whether
// that has another restartPolicy or none. In a sidecar it is allowed and checked: here its hook is an exec without a command.
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

// Several containers have several mistakes each: a hook without a handler, a sleep of 99 s in a grace period of 30 s, an
// unknown stop signal, and wrong grace periods of probes. All errors are returned: those of main containers first, then those
// of init containers and of ephemeral ones.
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

// A spec may be part of a larger object, here of the template of the item with index 3. Each error then has the path from the
// root of that object. The mistake is an exec hook without a command.
func TestPathsBeginWithThatOfTheSpec(t *testing.T) {
	path := field.NewPath("items").Index(3).Child("template", "spec")
	errs := validation.ValidatePodTermination(spec(withHook(exec())), validation.Options{}, path)
	requireErrors(t, errs, "items[3].template.spec.containers[0].lifecycle.preStop.exec.command: Required value")
}
