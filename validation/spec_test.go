package validation_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/validation"
)

// gateMap has the names of the feature gates that are on.
type gateMap map[string]bool

// options returns the options that switch off each feature whose gate the map lacks.
func (g gateMap) options() validation.Options {
	return validation.Options{
		NoSleepAction:           !g["PodLifecycleSleepAction"],
		NoZeroSleep:             !g["PodLifecycleSleepActionAllowZero"],
		NoStopSignals:           !g["ContainerStopSignals"],
		NoGracefulNodeShutdown:  !g["GracefulNodeShutdown"],
		NoShutdownByPodPriority: !g["GracefulNodeShutdownBasedOnPodPriority"],
	}
}

// allOff returns the options that switch off every feature.
func allOff() validation.Options { return gateMap{}.options() }

// spec returns a spec for Linux with a grace period of 30 s, after these changes.
func spec(changes ...func(*v1.PodSpec)) *v1.PodSpec {
	s := &v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(30)), OS: &v1.PodOS{Name: v1.Linux}}
	for _, change := range changes {
		change(s)
	}
	return s
}

// withGrace sets the pod's grace period.
func withGrace(seconds int64) func(*v1.PodSpec) {
	return func(s *v1.PodSpec) { s.TerminationGracePeriodSeconds = &seconds }
}

// withContainer adds a main container.
func withContainer(c v1.Container) func(*v1.PodSpec) {
	return func(s *v1.PodSpec) { s.Containers = append(s.Containers, c) }
}

// withInit adds an init container.
func withInit(c v1.Container) func(*v1.PodSpec) {
	return func(s *v1.PodSpec) { s.InitContainers = append(s.InitContainers, c) }
}

// withEphemeral adds an ephemeral container with this lifecycle.
func withEphemeral(lifecycle *v1.Lifecycle) func(*v1.PodSpec) {
	return func(s *v1.PodSpec) {
		s.EphemeralContainers = append(s.EphemeralContainers, v1.EphemeralContainer{
			EphemeralContainerCommon: v1.EphemeralContainerCommon{Lifecycle: lifecycle},
		})
	}
}

// withHook adds a container with this preStop hook.
func withHook(hook *v1.LifecycleHandler) func(*v1.PodSpec) {
	return withContainer(v1.Container{Lifecycle: preStop(hook)})
}

// sidecar returns an init container with restartPolicy Always.
func sidecar(lifecycle *v1.Lifecycle) v1.Container {
	return v1.Container{RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways), Lifecycle: lifecycle}
}

// preStop returns a lifecycle with only this preStop hook.
func preStop(hook *v1.LifecycleHandler) *v1.Lifecycle { return &v1.Lifecycle{PreStop: hook} }

// sleep, exec and httpGet return a hook of that kind.
func sleep(seconds int64) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: seconds}}
}

func exec(command ...string) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: command}}
}

func httpGet(path string, port intstr.IntOrString, scheme v1.URIScheme, headers ...v1.HTTPHeader) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: path, Port: port, Scheme: scheme, HTTPHeaders: headers}}
}

// probe returns a probe with a grace period of its own.
func probe(seconds int64) *v1.Probe { return &v1.Probe{TerminationGracePeriodSeconds: &seconds} }

// signal returns a lifecycle with only this stop signal.
func signal(s v1.Signal) *v1.Lifecycle { return &v1.Lifecycle{StopSignal: &s} }

// requireErrors checks the texts of all errors and their order.
func requireErrors(t *testing.T, got field.ErrorList, want ...string) {
	t.Helper()
	var texts []string
	for _, err := range got {
		texts = append(texts, err.Error())
	}
	require.Equal(t, want, texts)
}

// validate returns the errors of a spec whose path is "spec", with all features on.
func validate(s *v1.PodSpec) field.ErrorList {
	return validation.ValidatePodTermination(s, validation.Options{}, field.NewPath("spec"))
}

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
