package graceperiod_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

func TestForPod(t *testing.T) {
	for _, c := range []struct {
		name      string
		pod       *v1.Pod
		current   int64
		override  *int64
		want      int64
		shortened bool
	}{
		{"nil pod", nil, 0, nil, 1, false},
		{"nil pod with an override", nil, 0, ptr.To(int64(9)), 9, false},
		{"empty pod", &v1.Pod{}, 0, nil, 1, false},
		{"spec", podWith(ptr.To(int64(30)), nil), 0, nil, 30, false},
		{"spec of 0", podWith(ptr.To(int64(0)), nil), 0, nil, 1, false},
		{"negative spec", podWith(ptr.To(int64(-1)), nil), 0, nil, 1, false},
		{"override may exceed the spec", podWith(ptr.To(int64(30)), nil), 0, ptr.To(int64(60)), 60, false},
		{"override never exceeds the deletion", podWith(ptr.To(int64(30)), ptr.To(int64(5))), 0, ptr.To(int64(60)), 5, false},
		{"negative override", podWith(ptr.To(int64(30)), nil), 0, ptr.To(int64(-7)), 1, false},
		{"override of 0 alone", podWith(ptr.To(int64(30)), nil), 0, ptr.To(int64(0)), 1, false},
		{"deletion of 0 leaves it to the override", podWith(ptr.To(int64(30)), ptr.To(int64(0))), 0, ptr.To(int64(20)), 20, false},

		{"again, nothing new", podWith(ptr.To(int64(30)), nil), 20, nil, 20, false},
		{"again, the spec is not asked", podWith(ptr.To(int64(5)), nil), 20, nil, 20, false},
		{"again, shorter deletion", podWith(ptr.To(int64(30)), ptr.To(int64(5))), 20, nil, 5, true},
		{"again, longer deletion", podWith(ptr.To(int64(30)), ptr.To(int64(25))), 20, nil, 20, false},
		{"again, shorter override", podWith(ptr.To(int64(30)), nil), 20, ptr.To(int64(2)), 2, true},
		{"again, equal override", podWith(ptr.To(int64(30)), nil), 20, ptr.To(int64(20)), 20, false},
		{"again, longer override", podWith(ptr.To(int64(30)), nil), 20, ptr.To(int64(21)), 20, false},
		{"again, override of 0", podWith(ptr.To(int64(30)), nil), 20, ptr.To(int64(0)), 1, true},
		{"again, deletion of 0", podWith(ptr.To(int64(30)), ptr.To(int64(0))), 20, nil, 1, true},
		{"deletion of 0 does not lift the limit", podWith(ptr.To(int64(30)), ptr.To(int64(0))), 20, ptr.To(int64(60)), 20, false},
		{"at the floor", podWith(ptr.To(int64(30)), nil), 1, ptr.To(int64(0)), 1, false},
		{"current has run out", podWith(ptr.To(int64(30)), nil), -5, nil, 1, false},

		{"extremes down", podWith(ptr.To(int64(math.MinInt64)), ptr.To(int64(math.MinInt64))), math.MaxInt64, ptr.To(int64(math.MinInt64)), 1, true},
		{"extremes up", podWith(ptr.To(int64(math.MaxInt64)), nil), 0, ptr.To(int64(math.MaxInt64)), math.MaxInt64, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			seconds, shortened := graceperiod.ForPod(c.pod, c.current, c.override)
			require.Equal(t, c.want, seconds)
			require.Equal(t, c.shortened, shortened)
		})
	}
}

func TestForPodLeavesThePodAlone(t *testing.T) {
	pod := podWith(ptr.To(int64(30)), ptr.To(int64(-5)))
	override := int64(-3)
	before := pod.DeepCopy()
	graceperiod.ForPod(pod, 0, &override)
	require.Equal(t, before, pod)
	require.Equal(t, int64(-3), override)
}
