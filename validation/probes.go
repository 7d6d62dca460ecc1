package validation

import (
	v1 "k8s.io/api/core/v1"
)

// probe checks that the grace period of a probe is not 0 or less (KEP-2238). It may be longer
// than the pod's. probe may be nil. at is the container, name the field of the probe in it.
func (c *checker) probe(probe *v1.Probe, at lazyPath, name string) {
	if seconds := graceOf(probe); seconds != nil && *seconds <= 0 {
		c.invalid(at.child(name).child(fieldGrace), *seconds, "must be greater than 0")
	}
}

// graceOf returns the grace period of a probe, or nil. probe may be nil.
func graceOf(probe *v1.Probe) *int64 {
	if probe == nil {
		return nil
	}
	return probe.TerminationGracePeriodSeconds
}

// readinessProbe checks that a readiness probe has no grace period. A grace period of 0
// or less causes two errors, as in the API server (validateReadinessProbe): one from probe, and one
// because it is set at all.
func (c *checker) readinessProbe(probe *v1.Probe, at lazyPath) {
	c.probe(probe, at, fieldReadinessProbe)
	if seconds := graceOf(probe); seconds != nil {
		c.invalid(at.child(fieldReadinessProbe).child(fieldGrace), *seconds, "must not be set for readinessProbes")
	}
}
