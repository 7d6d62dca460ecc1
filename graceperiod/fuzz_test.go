package graceperiod_test

import (
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// optional returns a pointer to seconds, or nil. A fuzzer cannot generate pointers.
func optional(set bool, seconds int64) *int64 {
	if !set {
		return nil
	}
	return &seconds
}

// checkForContainer on random values: the grace period is that of the deletion, or else of the probe that has failed, or
// else of the spec, or else the minimum. The probe's does not count if the spec has none.
func FuzzForContainer(f *testing.F) {
	f.Add(true, int64(5), true, int64(10), true, int64(20), true, int64(30), "StartupProbe")
	f.Add(false, int64(0), true, int64(10), true, int64(20), true, int64(30), "LivenessProbe")
	f.Add(false, int64(0), true, int64(math.MinInt64), false, int64(0), false, int64(0), "Unknown")
	f.Fuzz(func(t *testing.T, hasDeletion bool, deletion int64, hasStartup bool, startup int64, hasLiveness bool, liveness int64, hasSpec bool, spec int64, reason string) {
		checkForContainer(t, optional(hasDeletion, deletion), optional(hasStartup, startup), optional(hasLiveness, liveness), optional(hasSpec, spec), graceperiod.KillReason(reason))
	})
}

// checkForPod on random values: the grace period is at least the minimum, never longer than the current one, and does not
// shrink for a longer override.
func FuzzForPod(f *testing.F) {
	f.Add(true, int64(30), true, int64(5), int64(20), true, int64(0), int64(1))
	f.Add(true, int64(30), true, int64(0), int64(20), true, int64(60), int64(61))
	f.Add(false, int64(0), true, int64(math.MinInt64), int64(math.MaxInt64), false, int64(0), int64(0))
	f.Fuzz(func(t *testing.T, hasSpec bool, spec int64, hasDeletion bool, deletion, current int64, hasOverride bool, override, longer int64) {
		checkForPod(t, optional(hasSpec, spec), optional(hasDeletion, deletion), current, optional(hasOverride, override), longer)
	})
}

// checkForDelete on random values: the requested grace period decides, or else that of the spec, or else 0. A negative one becomes
// 1. A pod without a node, or with the phase Failed or Succeeded, always has 0.
func FuzzForDelete(f *testing.F) {
	f.Add(true, int64(30), true, int64(5), "node-1", "Running")
	f.Add(true, int64(-1), false, int64(0), "node-1", "Failed")
	f.Fuzz(func(t *testing.T, hasSpec bool, spec int64, hasRequest bool, requested int64, node, phase string) {
		checkForDelete(t, optional(hasSpec, spec), optional(hasRequest, requested), node, v1.PodPhase(phase))
	})
}

// checkBeforeDelete on random values: the first delete is graceful, and a repeated one can only shorten the grace period. If
// isDeleted is set, the pod has been deleted already, and its deletionTimestamp is the seconds and nanoseconds from now.
func FuzzBeforeDelete(f *testing.F) {
	f.Add(true, int64(25), int64(500), true, int64(30), true, int64(10), int64(3))
	f.Add(true, int64(-1), int64(0), true, int64(math.MaxInt64), true, int64(0), int64(0))
	f.Add(false, int64(0), int64(0), false, int64(0), true, int64(math.MaxInt64), int64(math.MaxInt64-1))
	f.Fuzz(func(t *testing.T, isDeleted bool, seconds, nanoseconds int64, hasStored bool, stored int64, hasRequest bool, requested, generation int64) {
		pod := scheduledPod(optional(hasStored, stored))
		if isDeleted {
			end := testTime().Add(graceperiod.Duration(seconds)).Add(time.Duration(nanoseconds))
			pod.DeletionTimestamp = &metav1.Time{Time: end}
			pod.DeletionGracePeriodSeconds = optional(hasStored, stored)
		}
		pod.Generation = generation
		checkBeforeDelete(t, pod, deleteOptions(optional(hasRequest, requested)), testTime())
	})
}

// checkForSoftEviction on random values: the shorter of the spec's grace period and the eviction's limit decides, and a
// negative limit does not count.
func FuzzForSoftEviction(f *testing.F) {
	f.Add(true, int64(60), int64(20))
	f.Add(false, int64(0), int64(-1))
	f.Fuzz(func(t *testing.T, hasSpec bool, spec, limit int64) {
		checkForSoftEviction(t, optional(hasSpec, spec), limit)
	})
}

// checkForNodeShutdown on random values: the shorter of the spec's grace period and the seconds of the bucket decides.
func FuzzForNodeShutdown(f *testing.F) {
	f.Add(true, int64(60), int64(20))
	f.Add(false, int64(0), int64(-1))
	f.Fuzz(func(t *testing.T, hasSpec bool, spec, bucket int64) {
		checkForNodeShutdown(t, optional(hasSpec, spec), bucket)
	})
}

// checkDurations on random values: Duration and KillTimeout do not overflow, and do not shrink for more seconds.
func FuzzDuration(f *testing.F) {
	f.Add(int64(30), int64(31))
	f.Add(int64(math.MaxInt64)/int64(time.Second), int64(math.MaxInt64))
	f.Fuzz(checkDurations)
}

// checkRemaining on random values: what is left of a grace period is at least 2 s and does not grow with time.
func FuzzRemaining(f *testing.F) {
	f.Add(int64(30), int64(10*time.Second), int64(11*time.Second))
	f.Add(int64(math.MinInt64), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, seconds, elapsed, later int64) {
		checkRemaining(t, seconds, time.Duration(elapsed), time.Duration(later))
	})
}

// checkLeftOfDeletion on random values: what is left of a deletion is at least 1 s and does not grow with time.
func FuzzLeftOfDeletion(f *testing.F) {
	f.Add(true, int64(30), int64(25), int64(5), int64(0), int64(0), int64(1))
	f.Add(true, int64(math.MaxInt64), int64(math.MaxInt64), int64(0), int64(math.MinInt64), int64(999_999_999), int64(0))
	f.Fuzz(func(t *testing.T, hasGrace bool, grace, end, endNanoseconds, now, nowNanoseconds, later int64) {
		// Half of each, because comparing two time.Time values near the limits of int64 overflows.
		at, then := time.Unix(now>>1, nowNanoseconds), time.Unix(end>>1, endNanoseconds)
		checkLeftOfDeletion(t, optional(hasGrace, grace), then, at, at.Add(time.Duration(later)))
	})
}
