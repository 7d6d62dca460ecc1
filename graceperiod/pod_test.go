package graceperiod_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// The grace period of the deletion, and then the override, replaces the current grace period if it is set and
// shorter, or if the value so far is 0. If none of the three is set, the spec decides. The result is at least 1 s,
// and never more than a current grace period.
func TestForPod(t *testing.T) {
	for _, c := range []struct {
		name      string
		pod       *v1.Pod
		current   int64 // 0: the termination has not begun
		override  *int64
		want      int64
		shortened bool // the result is shorter than current
	}{
		{"nil pod", nil, 0, nil, 1, false},
		{"nil pod with an override", nil, 0, ptr.To(int64(9)), 9, false},
		{"empty pod", &v1.Pod{}, 0, nil, 1, false},
		{"spec", podWithSpecAndDeletion(ptr.To(int64(30)), nil), 0, nil, 30, false},
		{"spec of 0", podWithSpecAndDeletion(ptr.To(int64(0)), nil), 0, nil, 1, false},
		{"negative spec", podWithSpecAndDeletion(ptr.To(int64(-1)), nil), 0, nil, 1, false},
		{"override longer than spec", podWithSpecAndDeletion(ptr.To(int64(30)), nil), 0, ptr.To(int64(60)), 60, false},
		{"override longer than deletion", podWithSpecAndDeletion(ptr.To(int64(30)), ptr.To(int64(5))), 0, ptr.To(int64(60)), 5, false},
		{"negative override", podWithSpecAndDeletion(ptr.To(int64(30)), nil), 0, ptr.To(int64(-7)), 1, false},
		{"override of 0 alone", podWithSpecAndDeletion(ptr.To(int64(30)), nil), 0, ptr.To(int64(0)), 1, false},
		{"deletion of 0, override", podWithSpecAndDeletion(ptr.To(int64(30)), ptr.To(int64(0))), 0, ptr.To(int64(20)), 20, false},

		{"current only", podWithSpecAndDeletion(ptr.To(int64(30)), nil), 20, nil, 20, false},
		{"current, shorter spec", podWithSpecAndDeletion(ptr.To(int64(5)), nil), 20, nil, 20, false},
		{"current, shorter deletion", podWithSpecAndDeletion(ptr.To(int64(30)), ptr.To(int64(5))), 20, nil, 5, true},
		{"current, longer deletion", podWithSpecAndDeletion(ptr.To(int64(30)), ptr.To(int64(25))), 20, nil, 20, false},
		{"current, shorter override", podWithSpecAndDeletion(ptr.To(int64(30)), nil), 20, ptr.To(int64(2)), 2, true},
		{"current, equal override", podWithSpecAndDeletion(ptr.To(int64(30)), nil), 20, ptr.To(int64(20)), 20, false},
		{"current, longer override", podWithSpecAndDeletion(ptr.To(int64(30)), nil), 20, ptr.To(int64(21)), 20, false},
		{"current, override of 0", podWithSpecAndDeletion(ptr.To(int64(30)), nil), 20, ptr.To(int64(0)), 1, true},
		{"current, deletion of 0", podWithSpecAndDeletion(ptr.To(int64(30)), ptr.To(int64(0))), 20, nil, 1, true},
		{"current, deletion of 0, longer override", podWithSpecAndDeletion(ptr.To(int64(30)), ptr.To(int64(0))), 20, ptr.To(int64(60)), 20, false},
		{"current is the minimum", podWithSpecAndDeletion(ptr.To(int64(30)), nil), 1, ptr.To(int64(0)), 1, false},
		{"negative current", podWithSpecAndDeletion(ptr.To(int64(30)), nil), -5, nil, 1, false},

		{"min int64", podWithSpecAndDeletion(ptr.To(int64(math.MinInt64)), ptr.To(int64(math.MinInt64))), math.MaxInt64, ptr.To(int64(math.MinInt64)), 1, true},
		{"max int64", podWithSpecAndDeletion(ptr.To(int64(math.MaxInt64)), nil), 0, ptr.To(int64(math.MaxInt64)), math.MaxInt64, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			seconds, shortened := graceperiod.ForPod(c.pod, c.current, c.override)
			require.Equal(t, c.want, seconds)
			require.Equal(t, c.shortened, shortened)
		})
	}
}

// ForPod must not write a corrected value, such as the minimum of 1 s, into the pod or the override.
func TestForPodDoesNotChangeItsArguments(t *testing.T) {
	pod := podWithSpecAndDeletion(ptr.To(int64(30)), ptr.To(int64(-5)))
	override := int64(-3)
	before := pod.DeepCopy()
	graceperiod.ForPod(pod, 0, &override)
	require.Equal(t, before, pod)
	require.Equal(t, int64(-3), override)
}
