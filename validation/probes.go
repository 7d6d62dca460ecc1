package validation

import (
	v1 "k8s.io/api/core/v1"
)

// probe checks the grace period that a probe gives to the kill it causes
// (KEP-2238); nil is none. One that is longer than the pod's is allowed.
func (c *checker) probe(probe *v1.Probe, at place, name string) {
	if seconds := graceOf(probe); seconds != nil && *seconds <= 0 {
		c.invalid(at.child(name).child(fieldGrace), *seconds, "must be greater than 0")
	}
}

// graceOf is the grace period of a probe; nil: it has none, or there is no probe.
func graceOf(probe *v1.Probe) *int64 {
	if probe == nil {
		return nil
	}
	return probe.TerminationGracePeriodSeconds
}

// readinessProbe refuses a grace period: this probe kills nothing. One that is not
// positive is refused twice, as by the API server (validateReadinessProbe).
func (c *checker) readinessProbe(probe *v1.Probe, at place) {
	c.probe(probe, at, fieldReadinessProbe)
	if seconds := graceOf(probe); seconds != nil {
		c.invalid(at.child(fieldReadinessProbe).child(fieldGrace), *seconds, "must not be set for readinessProbes")
	}
}
