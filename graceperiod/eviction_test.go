package graceperiod_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

func TestForSoftEviction(t *testing.T) {
	for _, c := range []struct {
		name  string
		pod   *v1.Pod
		limit int64
		want  int64
	}{
		{"nil pod", nil, 20, 20},
		{"nil pod, deferred", nil, -1, 30},
		{"pod without a grace", &v1.Pod{}, 20, 20},
		{"pod without a grace, deferred", &v1.Pod{}, -1, 30},
		{"pod asks less", podWith(ptr.To(int64(5)), nil), 20, 5},
		{"pod asks as much", podWith(ptr.To(int64(20)), nil), 20, 20},
		{"pod asks more", podWith(ptr.To(int64(60)), nil), 20, 20},
		{"pod asks more, deferred", podWith(ptr.To(int64(60)), nil), -1, 60},
		{"pod asks 0, deferred", podWith(ptr.To(int64(0)), nil), -1, 0},
		{"pod asks for a negative, raw", podWith(ptr.To(int64(-5)), nil), 20, -5},
		{"maximum of 0, the kubelet's default", podWith(ptr.To(int64(60)), nil), 0, 0},
		{"extremes", podWith(ptr.To(int64(math.MaxInt64)), nil), math.MinInt64, math.MaxInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, graceperiod.ForSoftEviction(c.pod, c.limit))
		})
	}
}

// What forks compare with the kubelet's own constants.
func TestConstantsOfTheKubelet(t *testing.T) {
	require.EqualValues(t, 1, graceperiod.ImmediateEvictionSeconds)
	require.EqualValues(t, 1, graceperiod.MinimumPodSeconds)
	require.EqualValues(t, 2, graceperiod.MinimumContainerSeconds)
	require.EqualValues(t, 30, graceperiod.DefaultSeconds)
}

// An override of 0 means the minimum of 1 s, not the grace period of the pod's spec.
func TestSoftEvictionWithZeroGivesTheMinimum(t *testing.T) {
	pod := podWith(ptr.To(int64(60)), nil)
	seconds, _ := graceperiod.ForPod(pod, 0, ptr.To(graceperiod.ForSoftEviction(pod, 0)))
	require.Equal(t, graceperiod.MinimumPodSeconds, seconds)
}
