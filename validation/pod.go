package validation

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Names of fields that several files use.
const (
	fieldContainers          = "containers"
	fieldInitContainers      = "initContainers"
	fieldEphemeralContainers = "ephemeralContainers"
	fieldGrace               = "terminationGracePeriodSeconds"
	fieldLifecycle           = "lifecycle"
	fieldPostStart           = "postStart"
	fieldPreStop             = "preStop"
	fieldTCPSocket           = "tcpSocket"
	fieldSleep               = "sleep"
	fieldLivenessProbe       = "livenessProbe"
	fieldReadinessProbe      = "readinessProbe"
	fieldStartupProbe        = "startupProbe"
)

// ValidatePodTermination returns the errors of the API server's ValidatePodSpec for the
// fields that decide how a pod terminates: the grace period, hooks, stop signals, and the
// grace periods of probes. Paths, error types, values and messages are the API server's. path
// is the path of the spec; nil means that the spec is the root. The result is nil if there are
// no errors. For a nil spec it is one Required error.
//
// As in the API server, a negative grace period is valid, although it makes every sleep
// invalid, and so is a tcpSocket hook, although no kubelet runs it. [WarnPodTermination] warns
// about both.
func ValidatePodTermination(spec *v1.PodSpec, opts Options, path *field.Path) field.ErrorList {
	if spec == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	c := checker{opts: opts, grace: spec.TerminationGracePeriodSeconds, os: spec.OS}
	root := lazyPath{root: path}
	if c.grace == nil {
		c.required(root.child(fieldGrace))
	}
	for i := range spec.Containers {
		c.container(&spec.Containers[i], root.item(fieldContainers, i))
	}
	for i := range spec.InitContainers {
		c.initContainer(&spec.InitContainers[i], root.item(fieldInitContainers, i))
	}
	for i := range spec.EphemeralContainers {
		c.ephemeralContainer(&spec.EphemeralContainers[i], root.item(fieldEphemeralContainers, i))
	}
	return c.errs
}

// checker collects the errors of one spec.
type checker struct {
	opts  Options
	grace *int64    // of the pod
	os    *v1.PodOS // of the pod
	errs  field.ErrorList
}

// required, forbidden and invalid add an error of that type.
func (c *checker) required(at lazyPath) {
	c.errs = append(c.errs, field.Required(at.fieldPath(), ""))
}

func (c *checker) forbidden(at lazyPath, detail string) {
	c.errs = append(c.errs, field.Forbidden(at.fieldPath(), detail))
}

func (c *checker) invalid(at lazyPath, value any, detail string) {
	c.errs = append(c.errs, field.Invalid(at.fieldPath(), value, detail))
}

// container checks the lifecycle and the probes of a main container or a sidecar.
func (c *checker) container(container *v1.Container, at lazyPath) {
	if container.Lifecycle != nil {
		c.lifecycle(container.Lifecycle, at.child(fieldLifecycle))
	}
	c.probe(container.LivenessProbe, at, fieldLivenessProbe)
	c.readinessProbe(container.ReadinessProbe, at)
	c.probe(container.StartupProbe, at, fieldStartupProbe)
}

// initContainer checks a sidecar like a main container (KEP-753). Other init containers must
// not have a lifecycle.
func (c *checker) initContainer(container *v1.Container, at lazyPath) {
	if isSidecar(container) {
		c.container(container, at)
		return
	}
	if container.Lifecycle != nil {
		c.forbidden(at.child(fieldLifecycle), "may not be set for init containers without restartPolicy=Always")
	}
}

// ephemeralContainer checks that an ephemeral container has no lifecycle.
func (c *checker) ephemeralContainer(container *v1.EphemeralContainer, at lazyPath) {
	if container.Lifecycle != nil {
		c.forbidden(at.child(fieldLifecycle), "cannot be set for an Ephemeral Container")
	}
}

// isSidecar reports whether an init container is a sidecar. Do not call it for other kinds of
// containers, where restartPolicy has another meaning.
func isSidecar(container *v1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// lifecycle checks both hooks and the stop signal, in the order of the API server.
func (c *checker) lifecycle(lifecycle *v1.Lifecycle, at lazyPath) {
	if lifecycle.PostStart != nil {
		c.hook(lifecycle.PostStart, at.child(fieldPostStart))
	}
	if lifecycle.PreStop != nil {
		c.hook(lifecycle.PreStop, at.child(fieldPreStop))
	}
	if lifecycle.StopSignal != nil {
		c.stopSignal(*lifecycle.StopSignal, at.child("stopSignal"))
	}
}
