package validation

import (
	"fmt"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidatePodTerminationUpdate returns the errors of an update that replaces the stored spec
// old with spec: those of [ValidatePodTermination], and a Forbidden error for each of these
// fields that was changed. Only a negative grace period may be changed, to 1 (the API server's
// ValidatePodUpdate, which has one error for all changes of a spec).
//
// Containers are compared by name; new containers are not compared. Features that old uses are
// on, as in [Options.ForUpdate]. A nil old means a new pod.
func ValidatePodTerminationUpdate(spec, old *v1.PodSpec, opts Options, path *field.Path) field.ErrorList {
	errs := ValidatePodTermination(spec, opts.ForUpdate(old), path)
	if spec == nil || old == nil {
		return errs
	}
	c := changes{}
	root := place{root: path}
	c.grace(spec, old, root.child(fieldGrace))
	for i := range spec.Containers {
		c.container(&spec.Containers[i], storedContainer(spec.Containers, old.Containers, i), root.item(fieldContainers, i))
	}
	for i := range spec.InitContainers {
		c.container(&spec.InitContainers[i], storedContainer(spec.InitContainers, old.InitContainers, i), root.item(fieldInitContainers, i))
	}
	return append(errs, c.errs...)
}

// changes collects the errors for changed fields.
type changes struct {
	errs field.ErrorList
}

func (c *changes) forbid(at place, detail string) {
	c.errs = append(c.errs, field.Forbidden(at.path(), detail))
}

// grace checks that the pod's grace period is unchanged. A negative one, which older API
// servers stored, may be changed to 1, which has the same effect.
func (c *changes) grace(spec, old *v1.PodSpec, at place) {
	stored, seconds := old.TerminationGracePeriodSeconds, spec.TerminationGracePeriodSeconds
	isRepaired := stored != nil && seconds != nil && *stored < 0 && *seconds == 1
	if equal(stored, seconds) || isRepaired {
		return
	}
	c.forbid(at, fmt.Sprintf("may not be changed from %s to %s; only a negative value may become 1", formatSeconds(stored), formatSeconds(seconds)))
}

// storedContainer returns the stored container with the name of list[i], or nil for a new
// container. It looks at the same index first: if several containers have that name, each is
// then compared with its own stored one. (Other checks reject duplicate names.)
func storedContainer(list, stored []v1.Container, i int) *v1.Container {
	name := list[i].Name
	if i < len(stored) && stored[i].Name == name {
		return &stored[i]
	}
	index := slices.IndexFunc(stored, func(c v1.Container) bool { return c.Name == name })
	if index < 0 {
		return nil
	}
	return &stored[index]
}

// container compares a container with the stored one, which is nil for a new container. All
// changes of the lifecycle together are one error.
func (c *changes) container(container, stored *v1.Container, at place) {
	if stored == nil {
		return
	}
	if !equality.Semantic.DeepEqual(container.Lifecycle, stored.Lifecycle) {
		c.forbid(at.child(fieldLifecycle), "may not be changed")
	}
	c.probe(container.LivenessProbe, stored.LivenessProbe, at.child(fieldLivenessProbe))
	c.probe(container.ReadinessProbe, stored.ReadinessProbe, at.child(fieldReadinessProbe))
	c.probe(container.StartupProbe, stored.StartupProbe, at.child(fieldStartupProbe))
}

// probe compares the grace periods of two probes, which may be nil.
func (c *changes) probe(probe, stored *v1.Probe, at place) {
	storedSeconds, seconds := graceOf(stored), graceOf(probe)
	if !equal(storedSeconds, seconds) {
		c.forbid(at.child(fieldGrace), fmt.Sprintf("may not be changed from %s to %s", formatSeconds(storedSeconds), formatSeconds(seconds)))
	}
}

// equal reports whether both pointers are nil or both values are equal.
func equal(a, b *int64) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// formatSeconds formats seconds, which may be nil.
func formatSeconds(seconds *int64) string {
	if seconds == nil {
		return "unset"
	}
	return strconv.FormatInt(*seconds, 10)
}
