package graceperiod_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// The result is the shorter of the maximum and the pod's own grace period. A negative maximum is no limit; without
// either, the result is the default of 30 s.
func TestForSoftEviction(t *testing.T) {
	for _, c := range []struct {
		name  string
		pod   *v1.Pod
		limit int64 // the maximum in seconds
		want  int64
	}{
		{"nil pod", nil, 20, 20},
		{"nil pod, no limit", nil, -1, 30},
		{"no spec", &v1.Pod{}, 20, 20},
		{"no spec, no limit", &v1.Pod{}, -1, 30},
		{"shorter spec", podWithSpecAndDeletion(ptr.To(int64(5)), nil), 20, 5},
		{"equal spec", podWithSpecAndDeletion(ptr.To(int64(20)), nil), 20, 20},
		{"longer spec", podWithSpecAndDeletion(ptr.To(int64(60)), nil), 20, 20},
		{"longer spec, no limit", podWithSpecAndDeletion(ptr.To(int64(60)), nil), -1, 60},
		{"spec of 0, no limit", podWithSpecAndDeletion(ptr.To(int64(0)), nil), -1, 0},
		{"negative spec is returned unchanged", podWithSpecAndDeletion(ptr.To(int64(-5)), nil), 20, -5},
		{"maximum of 0, the kubelet's default", podWithSpecAndDeletion(ptr.To(int64(60)), nil), 0, 0},
		{"spec of max int64, limit of min int64", podWithSpecAndDeletion(ptr.To(int64(math.MaxInt64)), nil), math.MinInt64, math.MaxInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, graceperiod.ForSoftEviction(c.pod, c.limit))
		})
	}
}

// The constants have the kubelet's values.
func TestConstantsOfTheKubelet(t *testing.T) {
	require.EqualValues(t, 1, graceperiod.ImmediateEvictionSeconds)
	require.EqualValues(t, 1, graceperiod.MinimumPodSeconds)
	require.EqualValues(t, 2, graceperiod.MinimumContainerSeconds)
	require.EqualValues(t, 30, graceperiod.DefaultSeconds)
}

// With a maximum of 0, the kubelet's default, ForSoftEviction returns 0. As an override for ForPod, 0 means the
// minimum of 1 s, not the pod's own 60 s.
func TestSoftEvictionWithAMaximumOf0GivesTheMinimum(t *testing.T) {
	pod := podWithSpecAndDeletion(ptr.To(int64(60)), nil)
	seconds, _ := graceperiod.ForPod(pod, 0, ptr.To(graceperiod.ForSoftEviction(pod, 0)))
	require.Equal(t, graceperiod.MinimumPodSeconds, seconds)
}
