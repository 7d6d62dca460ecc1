package validation

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The names of fields that are used in several files.
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
// fields that decide how a pod terminates: the grace period, the hooks and stop signals
// of the containers, and the grace periods of their probes. Paths, error types, values
// and messages are the API server's. path is that of the spec; nil means that the spec is
// the root. The result is nil if there are no errors. A nil spec is one Required error.
//
// As in the API server, a negative grace period is no error, although it makes every sleep
// invalid, and neither is a tcpSocket hook, although no kubelet runs it.
// [WarnPodTermination] warns of both.
func ValidatePodTermination(spec *v1.PodSpec, opts Options, path *field.Path) field.ErrorList {
	if spec == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	c := checker{opts: opts, grace: spec.TerminationGracePeriodSeconds, os: spec.OS}
	root := place{root: path}
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

// checker collects the errors of one spec. It also has the fields of the pod that
// containers are checked against.
type checker struct {
	opts  Options
	grace *int64    // of the pod
	os    *v1.PodOS // of the pod
	errs  field.ErrorList
}

// required adds an error of that type, as forbidden and invalid do.
func (c *checker) required(at place) {
	c.errs = append(c.errs, field.Required(at.path(), ""))
}

func (c *checker) forbidden(at place, detail string) {
	c.errs = append(c.errs, field.Forbidden(at.path(), detail))
}

func (c *checker) invalid(at place, value any, detail string) {
	c.errs = append(c.errs, field.Invalid(at.path(), value, detail))
}

// container checks a main container or a sidecar: its lifecycle and the grace periods of
// its probes.
func (c *checker) container(container *v1.Container, at place) {
	if container.Lifecycle != nil {
		c.lifecycle(container.Lifecycle, at.child(fieldLifecycle))
	}
	c.probe(container.LivenessProbe, at, fieldLivenessProbe)
	c.readinessProbe(container.ReadinessProbe, at)
	c.probe(container.StartupProbe, at, fieldStartupProbe)
}

// initContainer checks a sidecar as a container (KEP-753). Any other init container must
// have no lifecycle.
func (c *checker) initContainer(container *v1.Container, at place) {
	if isSidecar(container) {
		c.container(container, at)
		return
	}
	if container.Lifecycle != nil {
		c.forbidden(at.child(fieldLifecycle), "may not be set for init containers without restartPolicy=Always")
	}
}

// ephemeralContainer checks that an ephemeral container has no lifecycle.
func (c *checker) ephemeralContainer(container *v1.EphemeralContainer, at place) {
	if container.Lifecycle != nil {
		c.forbidden(at.child(fieldLifecycle), "cannot be set for an Ephemeral Container")
	}
}

// isSidecar reports whether an init container is a sidecar, which runs beside the main
// containers. It must not be called for other kinds of containers, where restartPolicy
// means something else.
func isSidecar(container *v1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// lifecycle checks both hooks and the stop signal, in the order of the API server.
func (c *checker) lifecycle(lifecycle *v1.Lifecycle, at place) {
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
