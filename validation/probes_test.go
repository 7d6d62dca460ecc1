package validation_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// The grace period of a liveness or startup probe may be longer than that of the pod. Any probe may have none.
func TestValidProbes(t *testing.T) {
	withoutGrace := &v1.Probe{}
	require.Nil(t, validate(spec(withContainer(v1.Container{
		LivenessProbe: probe(1), StartupProbe: probe(math.MaxInt64), ReadinessProbe: withoutGrace,
	}))))
	require.Nil(t, validate(spec(withContainer(v1.Container{LivenessProbe: withoutGrace, StartupProbe: withoutGrace}))))
}

// The grace period of a liveness or startup probe must be more than 0. A readiness probe must have none, so a readiness
// probe with a grace period of 0 or less has two errors.
func TestInvalidProbes(t *testing.T) {
	requireErrors(t, validate(spec(withContainer(v1.Container{
		LivenessProbe: probe(0), ReadinessProbe: probe(-1), StartupProbe: probe(math.MinInt64),
	}))),
		"spec.containers[0].livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
		"spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: -1: must be greater than 0",
		"spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: -1: must not be set for readinessProbes",
		"spec.containers[0].startupProbe.terminationGracePeriodSeconds: Invalid value: -9223372036854775808: must be greater than 0")
	requireErrors(t, validate(spec(withContainer(v1.Container{ReadinessProbe: probe(5)}))),
		"spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes")
}
