package graceperiod_test

import (
	"cmp"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// The check functions of this file check properties that hold for every input. The tests of this file call the check
// functions with all combinations of edge values, and the fuzz targets (fuzz_test.go) call them with random values.

// edges returns the numbers of seconds at which a result changes.
func edges() []int64 {
	const most = math.MaxInt64 / int64(time.Second)
	return []int64{math.MinInt64, -most - 1, -1, 0, 1, 2, 3, 7, 30, most, most + 1, math.MaxInt64}
}

// optionalEdges returns the edges and nil.
func optionalEdges() []*int64 {
	optional := []*int64{nil}
	for _, edge := range edges() {
		optional = append(optional, &edge)
	}
	return optional
}

// requireExplained checks that an explanation has the result seconds, that the last rule that applied has the same value, and
// that the explanation gives a reason.
func requireExplained(t *testing.T, seconds int64, e graceperiod.Explanation) {
	t.Helper()
	require.Equal(t, seconds, e.Seconds)
	last, _, found := e.Decided()
	require.True(t, found, "at least one rule applied")
	require.Equal(t, seconds, last, "the last rule that applied decides")
	require.NotEqual(t, graceperiod.Explanation{Seconds: seconds}.String(), e.String(), "the explanation has a clause")
}

// checkForContainer checks ForContainer: the first of four grace periods that is set decides, namely that of the
// deletion, of the probe, of the spec, and the minimum. A probe's grace period counts only if the probe is the reason
// of the kill, and if the spec has a grace period.
func checkForContainer(t *testing.T, deletion, startup, liveness, spec *int64, reason graceperiod.KillReason) {
	pod := podOf(containerWithProbes("app", startup, liveness))
	pod.DeletionGracePeriodSeconds, pod.Spec.TerminationGracePeriodSeconds = deletion, spec
	seconds := graceperiod.ForContainer(pod, &pod.Spec.Containers[0], reason)

	ofProbe := map[graceperiod.KillReason]*int64{graceperiod.ReasonStartupProbe: startup, graceperiod.ReasonLivenessProbe: liveness}[reason]
	if spec == nil {
		ofProbe = nil
	}
	for _, candidate := range []*int64{deletion, ofProbe, spec, ptr.To(graceperiod.MinimumContainerSeconds)} {
		if candidate != nil {
			require.Equal(t, *candidate, seconds, "the first one that is set")
			break
		}
	}
	requireExplained(t, seconds, graceperiod.ExplainContainer(pod, &pod.Spec.Containers[0], reason))
}

// The first grace period that is set decides: that of the deletion, of the failed probe, of the spec, or else the minimum. The
// probe's does not count if the spec has none. Each is unset, negative, 0, 5 s, and the largest number, in all combinations.
func TestForContainerAtEdgeValues(t *testing.T) {
	values := []*int64{nil, seconds(math.MinInt64), seconds(0), seconds(5), seconds(math.MaxInt64)}
	for _, reason := range []graceperiod.KillReason{"", graceperiod.ReasonUnknown, graceperiod.ReasonStartupProbe, graceperiod.ReasonLivenessProbe, graceperiod.ReasonFailedPostStartHook} {
		for _, deletion := range values {
			for _, startup := range values {
				for _, liveness := range values {
					for _, spec := range values {
						checkForContainer(t, deletion, startup, liveness, spec, reason)
					}
				}
			}
		}
	}
}

// checkForPod checks ForPod: the result is at least the minimum, and never exceeds the pod's current grace period, if
// that is positive. Computing it again with the result as the current grace period changes nothing. A longer override
// does not make it shorter.
func checkForPod(t *testing.T, spec, deletion *int64, current int64, override *int64, longer int64) {
	pod := podWithSpecAndDeletion(spec, deletion)
	seconds, shortened := graceperiod.ForPod(pod, current, override)
	require.GreaterOrEqual(t, seconds, graceperiod.MinimumPodSeconds, "at least the minimum")
	if current > 0 {
		require.LessOrEqual(t, seconds, current, "never extended")
	}
	require.Equal(t, seconds < current, shortened)

	again, shortened := graceperiod.ForPod(pod, seconds, override)
	require.Equal(t, seconds, again, "idempotent")
	require.False(t, shortened)

	if override != nil && longer >= *override {
		more, _ := graceperiod.ForPod(pod, current, &longer)
		require.GreaterOrEqual(t, more, seconds, "monotone in the override")
	}
	requireExplained(t, seconds, graceperiod.ExplainPod(pod, current, override))
}

// The spec, the deletion, the pod's current grace period and the override are edge values, in all combinations. The result is
// at least 1 s and never longer than the current one. The next longer override does not make it shorter.
func TestForPodAtEdgeValues(t *testing.T) {
	for _, spec := range []*int64{nil, seconds(math.MinInt64), seconds(0), seconds(30), seconds(math.MaxInt64)} {
		for _, deletion := range []*int64{nil, seconds(-1), seconds(0), seconds(7), seconds(math.MaxInt64)} {
			for _, current := range []int64{math.MinInt64, 0, 1, 3, math.MaxInt64} {
				for i, override := range optionalEdges() {
					longer := edges()[min(i, len(edges())-1)] // the next edge, because optionalEdges begins with nil
					checkForPod(t, spec, deletion, current, override, longer)
				}
			}
		}
	}
}

// checkForDelete checks ForDelete: the requested grace period decides, or else that of the spec, or else 0. A pod of
// which nothing runs has 0, and a negative grace period becomes 1. ForDelete changes neither the pod nor the options;
// PodDeleteStrategy writes the result into the options.
func checkForDelete(t *testing.T, spec, requested *int64, node string, phase v1.PodPhase) {
	pod, options := podWithSpecAndDeletion(spec, nil), deleteOptions(requested)
	pod.Spec.NodeName, pod.Status.Phase = node, phase
	before := pod.DeepCopy()
	seconds, graceful := graceperiod.ForDelete(pod, options)
	require.True(t, graceful)
	require.Equal(t, before, pod)
	require.Equal(t, deleteOptions(requested), options)

	want := ptr.Deref(cmp.Or(requested, spec), 0)
	terminated := phase == v1.PodFailed || phase == v1.PodSucceeded
	switch {
	case node == "" || terminated:
		want = 0
	case want < 0:
		want = 1
	}
	require.Equal(t, want, seconds)
	requireExplained(t, seconds, graceperiod.ExplainDelete(pod, options))

	seconds, graceful = graceperiod.DeleteSeconds(spec, requested, node != "", terminated)
	require.Equal(t, want, seconds)
	require.True(t, graceful)
	require.True(t, graceperiod.PodDeleteStrategy{}.CheckGracefulDelete(t.Context(), pod, options))
	require.Equal(t, deleteOptions(&want), options, "the strategy agrees")
}

// The requested grace period decides, or else that of the spec, or else 0. A negative one becomes 1. A pod without a node, or with
// the phase Failed or Succeeded, always has 0. Both grace periods are edge values or unset, in all combinations.
func TestForDeleteAtEdgeValues(t *testing.T) {
	for _, spec := range optionalEdges() {
		for _, requested := range optionalEdges() {
			for _, node := range []string{"", "node-1"} {
				for _, phase := range []v1.PodPhase{"", v1.PodRunning, v1.PodSucceeded, v1.PodFailed} {
					checkForDelete(t, spec, requested, node, phase)
				}
			}
		}
	}
	requireExplained(t, 0, graceperiod.ExplainDelete(nil, nil))
}

// checkBeforeDelete checks BeforeDelete, for the first delete of a pod or a repeated one. The first is graceful, and a
// repeated one can only shorten the grace period. A graceful delete sets no deletionTimestamp in the past. A delete
// that is not graceful changes nothing, except that it corrects a negative grace period.
func checkBeforeDelete(t *testing.T, pod *v1.Pod, options *metav1.DeleteOptions, now time.Time) {
	before := pod.DeepCopy()
	graceful, pending, err := graceperiod.BeforeDelete(pod, options, now)
	require.NoError(t, err)
	require.False(t, graceful && pending)
	isFirst := before.DeletionTimestamp == nil
	if isFirst {
		require.True(t, graceful, "a first delete of a pod is always graceful")
	}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		require.GreaterOrEqual(t, *grace, int64(0))
	}
	if !graceful {
		before.DeletionGracePeriodSeconds = pod.DeletionGracePeriodSeconds
		require.Equal(t, before, pod, "only a negative grace period changes")
		return
	}
	require.False(t, pod.DeletionTimestamp.Time.Before(now), "never into the past")
	if !isFirst {
		was := *before.DeletionGracePeriodSeconds
		require.NotZero(t, was, "a stored grace period of 0 is not graceful")
		if was < 0 {
			was = 1
		}
		require.Less(t, *pod.DeletionGracePeriodSeconds, was, "never extended")
		require.True(t, pod.DeletionTimestamp.Time.Equal(now) || pod.DeletionTimestamp.Before(before.DeletionTimestamp), "never later")
		require.Equal(t, before.Generation, pod.Generation)
	}
	graceful, pending, err = graceperiod.BeforeDelete(pod.DeepCopy(), deleteOptions(nil), now)
	require.NoError(t, err)
	require.False(t, graceful, "options without a grace period change nothing")
	require.Equal(t, *pod.DeletionGracePeriodSeconds > 0, pending)
}

// For all combinations of edge values: BeforeDelete reports the first delete of a pod as graceful, and a repeated one,
// before or after the pod's deletionTimestamp, can only shorten the grace period.
func TestBeforeDeleteAtEdgeValues(t *testing.T) {
	for _, grace := range optionalEdges() {
		for _, requested := range optionalEdges() {
			// A repeated delete: the pod has a deletionTimestamp, and grace is its deletionGracePeriodSeconds.
			for _, endsIn := range []time.Duration{shortest, -time.Second, 0, 1, 10 * time.Second, longest} {
				checkBeforeDelete(t, podEndingIn(endsIn, grace), deleteOptions(requested), testTime())
			}
			// A first delete: grace is the terminationGracePeriodSeconds of the pod's spec.
			checkBeforeDelete(t, scheduledPod(grace), deleteOptions(requested), testTime())
			checkBeforeDelete(t, scheduledPod(grace), nil, testTime())
		}
	}
}

// checkForSoftEviction checks ForSoftEviction: the result is the shorter of the eviction's limit and the spec's grace
// period. A negative limit does not count. Without a limit and without a grace period the result is the default.
func checkForSoftEviction(t *testing.T, spec *int64, limit int64) {
	pod := podWithSpecAndDeletion(spec, nil)
	want := graceperiod.DefaultSeconds
	switch {
	case limit < 0 && spec != nil:
		want = *spec
	case limit >= 0 && spec != nil:
		want = min(limit, *spec)
	case limit >= 0:
		want = limit
	}
	require.Equal(t, want, graceperiod.ForSoftEviction(pod, limit))
	requireExplained(t, want, graceperiod.ExplainSoftEviction(pod, limit))
}

// checkForNodeShutdown checks ForNodeShutdown: the result is the shorter of what the bucket has and the spec's grace
// period. The grace period of a deletion, here 3 s, has no effect, because ForPod considers it.
func checkForNodeShutdown(t *testing.T, spec *int64, bucket int64) {
	pod := podWithSpecAndDeletion(spec, seconds(3))
	want := min(bucket, ptr.Deref(spec, bucket))
	require.Equal(t, want, graceperiod.ForNodeShutdown(pod, bucket))
	requireExplained(t, want, graceperiod.ExplainNodeShutdown(pod, bucket))
}

// The shorter of two numbers decides: the spec's grace period, and the limit of a soft eviction or the seconds of a bucket.
// Both are edge values, in all combinations.
func TestOverridesAtEdgeValues(t *testing.T) {
	for _, spec := range optionalEdges() {
		for _, limit := range edges() {
			checkForSoftEviction(t, spec, limit)
			checkForNodeShutdown(t, spec, limit)
		}
	}
}

// checkDurations checks that Duration and KillTimeout do not overflow, and do not shrink for more seconds.
func checkDurations(t *testing.T, seconds, more int64) {
	span, timeout := graceperiod.Duration(seconds), graceperiod.KillTimeout(seconds)
	if span != longest && span != shortest {
		require.Equal(t, seconds, int64(span/time.Second))
		require.Zero(t, span%time.Second)
	}
	require.Equal(t, seconds < 0, span < 0)
	require.GreaterOrEqual(t, timeout, 10*time.Second)
	require.GreaterOrEqual(t, timeout, span)
	if more >= seconds {
		require.GreaterOrEqual(t, graceperiod.Duration(more), span, "monotone")
		require.GreaterOrEqual(t, graceperiod.KillTimeout(more), timeout, "monotone")
	}
}

// checkRemaining checks Remaining: the result is at least the minimum, never exceeds the grace period, and does not
// grow with the elapsed time.
func checkRemaining(t *testing.T, seconds int64, elapsed, later time.Duration) {
	left := graceperiod.Remaining(seconds, elapsed)
	require.GreaterOrEqual(t, left, graceperiod.MinimumContainerSeconds, "at least the minimum")
	require.LessOrEqual(t, left, max(seconds, graceperiod.MinimumContainerSeconds), "never extended")
	if left > graceperiod.MinimumContainerSeconds {
		require.Equal(t, seconds, left+int64(max(elapsed, 0)/time.Second), "whole seconds are subtracted")
	}
	if later >= elapsed {
		require.LessOrEqual(t, graceperiod.Remaining(seconds, later), left, "monotone in time")
	}
}

// No conversion overflows, and what remains of a grace period is at least 2 s and does not grow with time. Grace periods are
// edge values in seconds, and elapsed times are edge values in nanoseconds and in seconds, in all combinations.
func TestDurationsAtEdgeValues(t *testing.T) {
	for _, seconds := range edges() {
		for _, other := range edges() {
			checkDurations(t, seconds, other)
			for _, elapsed := range edges() {
				checkRemaining(t, seconds, time.Duration(elapsed), time.Duration(other))
				checkRemaining(t, seconds, graceperiod.Duration(elapsed), graceperiod.Duration(other))
			}
		}
	}
}

// checkLeftOfDeletion checks LeftOfDeletion: the result is at least the minimum and at most the grace period. In
// between it is rounded up to whole seconds. It does not grow with time.
func checkLeftOfDeletion(t *testing.T, grace *int64, end, now, later time.Time) {
	pod := podWithSpecAndDeletion(nil, grace)
	pod.DeletionTimestamp = &metav1.Time{Time: end}
	left := graceperiod.LeftOfDeletion(pod, now)
	if end.IsZero() {
		whole, _ := graceperiod.ForPod(pod, noCurrent, nil)
		require.Equal(t, whole, left)
		return
	}
	most := int64(1)
	if grace != nil {
		most = max(most, *grace)
	}
	require.GreaterOrEqual(t, left, graceperiod.MinimumPodSeconds, "at least the minimum")
	require.LessOrEqual(t, left, most, "at most the grace period")
	if left > graceperiod.MinimumPodSeconds && left < most {
		over := end.Sub(now) - graceperiod.Duration(left)
		require.LessOrEqual(t, over, time.Duration(0), "rounded up")
		require.Greater(t, over, -time.Second, "by less than a second")
	}
	if !later.Before(now) {
		require.LessOrEqual(t, graceperiod.LeftOfDeletion(pod, later), left, "monotone in time")
	}
}

// What is left of a deletion is at least 1 s and at most its grace period, and does not grow with time. The end of the
// deletion, and the later time for which the result is computed again, are edge values in seconds and in nanoseconds from
// now.
func TestLeftOfDeletionAtEdgeValues(t *testing.T) {
	for _, grace := range optionalEdges() {
		for _, end := range edges() {
			for _, later := range edges() {
				checkLeftOfDeletion(t, grace, testTime().Add(graceperiod.Duration(end)), testTime(), testTime().Add(time.Duration(later)))
				checkLeftOfDeletion(t, grace, testTime().Add(time.Duration(end)), testTime(), testTime().Add(graceperiod.Duration(later)))
			}
		}
	}
}
