package validation

import (
	"fmt"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidatePodTerminationUpdate finds what the API server refuses in the same
// fields when spec replaces old: what [ValidatePodTermination] finds in spec, and
// every one of them that differs, because they cannot be changed. The exception
// is a negative grace period, which may become 1 and nothing else (ValidatePodUpdate).
// The API server says once for the spec that it was changed; here each field says
// so, as a forbidden value. Containers are compared by their names; those that are
// new are not compared. What old uses already is allowed, as by [Options.ForUpdate].
// A nil old is a new pod.
func ValidatePodTerminationUpdate(spec, old *v1.PodSpec, opts Options, path *field.Path) field.ErrorList {
	errs := ValidatePodTermination(spec, opts.ForUpdate(old), path)
	if spec == nil || old == nil {
		return errs
	}
	c := changes{}
	root := place{root: path}
	c.grace(spec, old, root.child(fieldGrace))
	for i := range spec.Containers {
		c.container(&spec.Containers[i], counterpart(spec.Containers, old.Containers, i), root.item(fieldContainers, i))
	}
	for i := range spec.InitContainers {
		c.container(&spec.InitContainers[i], counterpart(spec.InitContainers, old.InitContainers, i), root.item(fieldInitContainers, i))
	}
	return append(errs, c.errs...)
}

// changes collects the fields that an update must not change. It is apart from
// checker, which knows one spec only.
type changes struct {
	errs field.ErrorList
}

// forbid adds an error of the type that the API server gives to every change.
func (c *changes) forbid(at place, detail string) {
	c.errs = append(c.errs, field.Forbidden(at.path(), detail))
}

// grace lets a negative grace period, which older API servers stored, become the
// second that it counts as.
func (c *changes) grace(spec, old *v1.PodSpec, at place) {
	was, is := old.TerminationGracePeriodSeconds, spec.TerminationGracePeriodSeconds
	if equal(was, is) || was != nil && is != nil && *was < 0 && *is == 1 {
		return
	}
	c.forbid(at, fmt.Sprintf("may not be changed from %s to %s; only a negative value may become 1", show(was), show(is)))
}

// counterpart gives the stored container of the name of container i: the one in
// the same place if it has that name, so that names given twice, an error that
// others speak of, are no change. Nil: there is none.
func counterpart(list, old []v1.Container, i int) *v1.Container {
	name := list[i].Name
	if i < len(old) && old[i].Name == name {
		return &old[i]
	}
	elsewhere := slices.IndexFunc(old, func(o v1.Container) bool { return o.Name == name })
	if elsewhere < 0 {
		return nil
	}
	return &old[elsewhere]
}

// container compares a container with the stored one; nil: it is new. A lifecycle
// is one value: which part of it was changed is plain to who changed it.
func (c *changes) container(container, was *v1.Container, at place) {
	if was == nil {
		return
	}
	if !equality.Semantic.DeepEqual(container.Lifecycle, was.Lifecycle) {
		c.forbid(at.child(fieldLifecycle), "may not be changed")
	}
	c.probe(container.LivenessProbe, was.LivenessProbe, at.child(fieldLivenessProbe))
	c.probe(container.ReadinessProbe, was.ReadinessProbe, at.child(fieldReadinessProbe))
	c.probe(container.StartupProbe, was.StartupProbe, at.child(fieldStartupProbe))
}

// probe compares the grace of two probes, one of which may be missing. That a
// probe itself was added or removed is not the termination's business.
func (c *changes) probe(probe, old *v1.Probe, at place) {
	was, is := graceOf(old), graceOf(probe)
	if !equal(was, is) {
		c.forbid(at.child(fieldGrace), fmt.Sprintf("may not be changed from %s to %s", show(was), show(is)))
	}
}

// equal tells whether two values, or two missing ones, are the same.
func equal(a, b *int64) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// show writes seconds that may be unset.
func show(seconds *int64) string {
	if seconds == nil {
		return "unset"
	}
	return strconv.FormatInt(*seconds, 10)
}
