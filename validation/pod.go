package validation

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The names of fields that several subjects need.
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

// ValidatePodTermination finds what the API server refuses in the fields that
// decide how a pod ends: the grace period, the hooks and stop signals of its
// containers, and the grace periods of their probes. Paths, error types, values
// and messages are those of its ValidatePodSpec. path is that of the spec; nil
// means that the spec is the root. Nil means that nothing is wrong; a nil spec is
// one required value.
//
// A negative grace period is let pass, as it is there, although it makes every
// sleep invalid; a tcpSocket hook too, although no kubelet runs it.
// [WarnPodTermination] speaks of both.
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

// checker collects what is wrong with one spec. It holds what a container is
// checked against beside itself.
type checker struct {
	opts  Options
	grace *int64    // of the pod
	os    *v1.PodOS // of the pod
	errs  field.ErrorList
}

// required, forbidden and invalid add an error; only here a place becomes a path.
func (c *checker) required(at place) {
	c.errs = append(c.errs, field.Required(at.path(), ""))
}

func (c *checker) forbidden(at place, detail string) {
	c.errs = append(c.errs, field.Forbidden(at.path(), detail))
}

func (c *checker) invalid(at place, value any, detail string) {
	c.errs = append(c.errs, field.Invalid(at.path(), value, detail))
}

// container checks a container that runs beside others: a main one or a sidecar.
// Of its probes only the grace matters, and a probe without one costs nothing.
func (c *checker) container(container *v1.Container, at place) {
	if container.Lifecycle != nil {
		c.lifecycle(container.Lifecycle, at.child(fieldLifecycle))
	}
	c.probe(container.LivenessProbe, at, fieldLivenessProbe)
	c.readinessProbe(container.ReadinessProbe, at)
	c.probe(container.StartupProbe, at, fieldStartupProbe)
}

// initContainer checks a sidecar like any container (KEP-753); a container that
// runs to its end has no hooks, because nothing is there to stop.
func (c *checker) initContainer(container *v1.Container, at place) {
	if isSidecar(container) {
		c.container(container, at)
		return
	}
	if container.Lifecycle != nil {
		c.forbidden(at.child(fieldLifecycle), "may not be set for init containers without restartPolicy=Always")
	}
}

// ephemeralContainer: one is added to look at a pod, and ends with it.
func (c *checker) ephemeralContainer(container *v1.EphemeralContainer, at place) {
	if container.Lifecycle != nil {
		c.forbidden(at.child(fieldLifecycle), "cannot be set for an Ephemeral Container")
	}
}

// isSidecar tells whether an init container goes on beside the main ones. On any
// other kind of container the policy means nothing of the sort.
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
