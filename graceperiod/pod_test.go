package graceperiod_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// noCurrent is the current grace period of a pod whose termination has not begun.
const noCurrent = 0

// ForPod takes the pod's current grace period, then that of the deletion, and then the override. Each replaces the one before if it
// is shorter, or if the one before is 0. If none of the three is set, the spec decides. The result is at least 1 s, and never more
// than a current grace period.
func TestForPod(t *testing.T) {
	for _, c := range []struct {
		name      string
		pod       *v1.Pod
		current   int64 // zero: noCurrent
		override  *int64
		want      int64
		isShorter bool // the result is shorter than current
	}{
		{name: "nil pod", want: 1},
		{name: "nil pod with an override", override: seconds(9), want: 9},
		{name: "empty pod", pod: &v1.Pod{}, want: 1},
		{name: "spec", pod: podWithSpecAndDeletion(seconds(30), nil), want: 30},
		{name: "spec of 0", pod: podWithSpecAndDeletion(seconds(0), nil), want: 1},
		{name: "negative spec", pod: podWithSpecAndDeletion(seconds(-1), nil), want: 1},
		{name: "override longer than spec", pod: podWithSpecAndDeletion(seconds(30), nil), override: seconds(60), want: 60},
		{name: "override longer than deletion", pod: podWithSpecAndDeletion(seconds(30), seconds(5)), override: seconds(60), want: 5},
		{name: "negative override", pod: podWithSpecAndDeletion(seconds(30), nil), override: seconds(-7), want: 1},
		{name: "override of 0 alone", pod: podWithSpecAndDeletion(seconds(30), nil), override: seconds(0), want: 1},
		{name: "deletion of 0, override", pod: podWithSpecAndDeletion(seconds(30), seconds(0)), override: seconds(20), want: 20},

		{name: "current only", pod: podWithSpecAndDeletion(seconds(30), nil), current: 20, want: 20},
		{name: "current, shorter spec", pod: podWithSpecAndDeletion(seconds(5), nil), current: 20, want: 20},
		{name: "current, shorter deletion", pod: podWithSpecAndDeletion(seconds(30), seconds(5)), current: 20, want: 5, isShorter: true},
		{name: "current, longer deletion", pod: podWithSpecAndDeletion(seconds(30), seconds(25)), current: 20, want: 20},
		{name: "current, shorter override", pod: podWithSpecAndDeletion(seconds(30), nil), current: 20, override: seconds(2), want: 2, isShorter: true},
		{name: "current, equal override", pod: podWithSpecAndDeletion(seconds(30), nil), current: 20, override: seconds(20), want: 20},
		{name: "current, longer override", pod: podWithSpecAndDeletion(seconds(30), nil), current: 20, override: seconds(21), want: 20},
		{name: "current, override of 0", pod: podWithSpecAndDeletion(seconds(30), nil), current: 20, override: seconds(0), want: 1, isShorter: true},
		{name: "current, deletion of 0", pod: podWithSpecAndDeletion(seconds(30), seconds(0)), current: 20, want: 1, isShorter: true},
		{name: "current, deletion of 0, longer override", pod: podWithSpecAndDeletion(seconds(30), seconds(0)), current: 20, override: seconds(60), want: 20},
		{name: "current is the minimum", pod: podWithSpecAndDeletion(seconds(30), nil), current: 1, override: seconds(0), want: 1},
		{name: "negative current", pod: podWithSpecAndDeletion(seconds(30), nil), current: -5, want: 1},

		{name: "min int64", pod: podWithSpecAndDeletion(seconds(math.MinInt64), seconds(math.MinInt64)), current: math.MaxInt64, override: seconds(math.MinInt64), want: 1, isShorter: true},
		{name: "max int64", pod: podWithSpecAndDeletion(seconds(math.MaxInt64), nil), override: seconds(math.MaxInt64), want: math.MaxInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			seconds, shortened := graceperiod.ForPod(c.pod, c.current, c.override)
			require.Equal(t, c.want, seconds)
			require.Equal(t, c.isShorter, shortened)
		})
	}
}

// ForPod must not write a corrected value, such as the minimum of 1 s, into the pod or the override.
func TestForPodDoesNotChangeItsArguments(t *testing.T) {
	pod := podWithSpecAndDeletion(seconds(30), seconds(-5))
	override := int64(-3)
	before := pod.DeepCopy()
	graceperiod.ForPod(pod, noCurrent, &override)
	require.Equal(t, before, pod)
	require.Equal(t, int64(-3), override)
}
