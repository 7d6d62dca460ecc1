package graceperiod_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// testTime is the time of the deletes in the tests.
func testTime() time.Time { return time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC) }

// seconds returns a grace period.
func seconds(n int64) *int64 { return &n }

// podEndingIn returns a pod that has been deleted already: its deletionTimestamp is this long after testTime, and grace
// is its deletionGracePeriodSeconds.
func podEndingIn(afterTestTime time.Duration, grace *int64) *v1.Pod {
	pod := scheduledPod(seconds(60))
	pod.DeletionTimestamp = &metav1.Time{Time: testTime().Add(afterTestTime)}
	pod.DeletionGracePeriodSeconds = grace
	return pod
}

// The first delete of a pod sets its deletionGracePeriodSeconds and deletionTimestamp, writes the grace period into the
// options, and increments the pod's generation, unless it is 0. The grace period is that of the options, else of the spec. It
// is 0 without options and for a pod without a node, and a negative one becomes 1.
func TestFirstDelete(t *testing.T) {
	for _, c := range []struct {
		name           string
		pod            *v1.Pod
		options        *metav1.DeleteOptions
		generation     int64 // of the pod, before the delete
		wantGeneration int64
		want           int64         // the grace period, in seconds
		ends           time.Duration // from testTime to the deletionTimestamp
	}{
		{name: "the spec decides", pod: scheduledPod(seconds(30)), options: deleteOptions(nil), want: 30, ends: 30 * time.Second},
		{name: "the options decide", pod: scheduledPod(seconds(30)), options: deleteOptions(seconds(90)), generation: 4, wantGeneration: 5, want: 90, ends: 90 * time.Second},
		{name: "the options request 0 s", pod: scheduledPod(seconds(30)), options: deleteOptions(seconds(0)), want: 0},
		{name: "no options", pod: scheduledPod(seconds(30)), generation: 1, wantGeneration: 2, want: 0},
		{name: "the spec is negative", pod: scheduledPod(seconds(-30)), options: deleteOptions(nil), want: 1, ends: time.Second},
		{name: "the options are negative", pod: scheduledPod(seconds(30)), options: deleteOptions(seconds(math.MinInt64)), want: 1, ends: time.Second},
		{name: "the pod is not scheduled", pod: podWithSpecAndDeletion(seconds(30), nil), options: deleteOptions(seconds(20)), want: 0},
		{name: "the pod has a stored grace period, but no deletionTimestamp", pod: podWithSpecAndDeletion(nil, seconds(-9)), options: deleteOptions(nil), want: 0},
		{name: "the options request the largest int64", pod: scheduledPod(nil), options: deleteOptions(seconds(math.MaxInt64)), want: math.MaxInt64, ends: longest},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.pod.Generation = c.generation
			graceful, pending, err := graceperiod.BeforeDelete(c.pod, c.options, testTime())
			require.NoError(t, err)
			require.True(t, graceful)
			require.False(t, pending)
			require.Equal(t, &c.want, c.pod.DeletionGracePeriodSeconds)
			require.Equal(t, testTime().Add(c.ends), c.pod.DeletionTimestamp.Time)
			if c.options != nil {
				require.Equal(t, deleteOptions(&c.want), c.options)
			}
			require.Equal(t, c.wantGeneration, c.pod.Generation)
		})
	}
}

// A repeated delete can only shorten the grace period, and never changes the generation. If it shortens 30 s to 10 s,
// the deletionTimestamp moves earlier by the difference of 20 s, such as from 25 s to 5 s after now. If it would move
// into the past, it becomes now, and the stored grace period becomes 1, or 0 if 0 was requested. Negative values count
// as 1. The options get the grace period of the pod if they have none, unless the pod must be removed.
//
// BeforeDelete returns graceful if the grace period was shortened, and pending if there was nothing to shorten. If it
// returns neither, the pod must be removed now, because its stored grace period is nil or 0.
func TestRepeatedDelete(t *testing.T) {
	type outcome struct {
		graceful, pending bool
		ends              time.Duration // from testTime to the deletionTimestamp
		stored, options   *int64        // the grace period in the pod, and in the options
	}
	const s = time.Second
	for _, c := range []struct {
		name    string
		pod     *v1.Pod
		options *metav1.DeleteOptions
		want    outcome
	}{
		{name: "shorter", pod: podEndingIn(25*s, seconds(30)), options: deleteOptions(seconds(10)), want: outcome{graceful: true, ends: 5 * s, stored: seconds(10), options: seconds(10)}},
		{name: "shorter, ends now", pod: podEndingIn(20*s, seconds(30)), options: deleteOptions(seconds(10)), want: outcome{graceful: true, stored: seconds(10), options: seconds(10)}},
		{name: "shorter, has already ended", pod: podEndingIn(15*s, seconds(30)), options: deleteOptions(seconds(10)), want: outcome{graceful: true, stored: seconds(1), options: seconds(10)}},
		{name: "forced", pod: podEndingIn(25*s, seconds(30)), options: deleteOptions(seconds(0)), want: outcome{graceful: true, stored: seconds(0), options: seconds(0)}},
		{name: "forced by negative options", pod: podEndingIn(25*s, seconds(30)), options: deleteOptions(seconds(-4)), want: outcome{graceful: true, stored: seconds(1), options: seconds(1)}},
		{name: "forced, deletionTimestamp beyond the grace period", pod: podEndingIn(40*s, seconds(30)), options: deleteOptions(seconds(0)), want: outcome{graceful: true, ends: 10 * s, stored: seconds(0), options: seconds(0)}},
		{name: "equal", pod: podEndingIn(25*s, seconds(30)), options: deleteOptions(seconds(30)), want: outcome{pending: true, ends: 25 * s, stored: seconds(30), options: seconds(30)}},
		{name: "longer", pod: podEndingIn(25*s, seconds(30)), options: deleteOptions(seconds(31)), want: outcome{pending: true, ends: 25 * s, stored: seconds(30), options: seconds(31)}},
		{name: "options without a grace period", pod: podEndingIn(25*s, seconds(30)), options: deleteOptions(nil), want: outcome{pending: true, ends: 25 * s, stored: seconds(30), options: seconds(30)}},
		{name: "stored nil", pod: podEndingIn(25*s, nil), options: deleteOptions(seconds(9)), want: outcome{ends: 25 * s, options: seconds(9)}},
		{name: "stored 0", pod: podEndingIn(0, seconds(0)), options: deleteOptions(nil), want: outcome{stored: seconds(0)}},
		{name: "stored negative", pod: podEndingIn(25*s, seconds(-8)), options: deleteOptions(nil), want: outcome{pending: true, ends: 25 * s, stored: seconds(1), options: seconds(1)}},
		{name: "stored max int64, does not overflow", pod: podEndingIn(0, seconds(math.MaxInt64)), options: deleteOptions(seconds(7)), want: outcome{graceful: true, stored: seconds(1), options: seconds(7)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.pod.Generation = 4
			graceful, pending, err := graceperiod.BeforeDelete(c.pod, c.options, testTime())
			require.NoError(t, err)
			ends := c.pod.DeletionTimestamp.Sub(testTime())
			require.Equal(t, c.want, outcome{
				graceful: graceful, pending: pending, ends: ends,
				stored: c.pod.DeletionGracePeriodSeconds, options: c.options.GracePeriodSeconds,
			})
			require.Equal(t, int64(4), c.pod.Generation)
		})
	}
}

// A pod has 25 s of its 30 s left when it is deleted again without options, which means a request for 0 s. Its grace
// period becomes 0, and its deletionTimestamp becomes now. graceful is true, because the grace period was shortened.
func TestRepeatedDeleteWithoutOptionsIsForced(t *testing.T) {
	pod := podEndingIn(25*time.Second, seconds(30))
	graceful, pending, err := graceperiod.BeforeDelete(pod, nil, testTime())
	require.NoError(t, err)
	require.True(t, graceful)
	require.False(t, pending)
	require.Equal(t, podEndingIn(0, seconds(0)), pod)
}

// BeforeDelete writes the grace period into the options too, which callers often reuse for many pods. The pod and the options
// must not share a pointer: changing the options later must not change the grace period of the pod.
func TestBeforeDeleteSharesNoPointers(t *testing.T) {
	for name, c := range map[string]struct {
		pod             *v1.Pod
		requested, want *int64
	}{
		"first delete":             {pod: scheduledPod(seconds(30)), want: seconds(30)},
		"repeated delete":          {pod: podEndingIn(25*time.Second, seconds(30)), want: seconds(30)},
		"repeated delete, shorter": {pod: podEndingIn(25*time.Second, seconds(30)), requested: seconds(20), want: seconds(20)},
	} {
		options := deleteOptions(c.requested)
		_, _, err := graceperiod.BeforeDelete(c.pod, options, testTime())
		require.NoError(t, err)
		require.Equal(t, c.want, options.GracePeriodSeconds)
		*options.GracePeriodSeconds = 99
		require.Equal(t, c.want, c.pod.DeletionGracePeriodSeconds, name)
	}
}

// BeforeDelete rejects a delete with the API server's error. It then changes neither the pod nor the options. Both have
// a negative grace period, which an accepted delete would replace.
func TestBeforeDeleteErrors(t *testing.T) {
	pod := podEndingIn(0, seconds(-3))
	pod.Name, pod.UID, pod.ResourceVersion = "web", "u-1", "17"
	for _, c := range []struct {
		name    string
		options metav1.DeleteOptions
		is      func(error) bool
		message string
	}{
		{
			name:    "unknown policy",
			options: metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletionPropagation("Sideways"))},
			is:      apierrors.IsInvalid,
			message: `DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"`,
		},
		{
			name:    "another UID",
			options: metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("u-2"))}},
			is:      apierrors.IsConflict,
			message: `Operation cannot be fulfilled on Pod "web": the UID in the precondition (u-2) does not match the UID in record (u-1). The object might have been deleted and then recreated`,
		},
		{
			name:    "another version",
			options: metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("u-1")), ResourceVersion: ptr.To("16")}},
			is:      apierrors.IsConflict,
			message: `Operation cannot be fulfilled on Pod "web": the ResourceVersion in the precondition (16) does not match the ResourceVersion in record (17). The object might have been modified`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.GracePeriodSeconds = seconds(-2)
			before, requested := pod.DeepCopy(), c.options.DeepCopy()
			graceful, pending, err := graceperiod.BeforeDelete(pod, &c.options, testTime())
			require.True(t, c.is(err), "%v", err)
			require.EqualError(t, err, c.message)
			require.False(t, graceful)
			require.False(t, pending)
			require.Equal(t, before, pod)
			require.Equal(t, requested, &c.options)
		})
	}
}

// BeforeDelete of a nil pod returns an InternalError.
func TestBeforeDeleteOfANilPod(t *testing.T) {
	graceful, pending, err := graceperiod.BeforeDelete(nil, nil, testTime())
	require.True(t, apierrors.IsInternalError(err), "%v", err)
	require.False(t, graceful)
	require.False(t, pending)
}

// The options require the UID and the resourceVersion that the pod has, so the delete is as graceful as one without
// preconditions.
func TestBeforeDeleteWithMetPreconditions(t *testing.T) {
	pod := scheduledPod(seconds(30))
	pod.UID, pod.ResourceVersion = "u-1", "17"
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("u-1")), ResourceVersion: ptr.To("17")}}
	graceful, _, err := graceperiod.BeforeDelete(pod, options, testTime())
	require.NoError(t, err)
	require.True(t, graceful)
}
