package graceperiod_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// The result is the shorter of the bucket's time and the pod's own grace period, unchanged even if it is 0 or less.
// The grace period of a deletion has no effect here: ForPod considers that.
func TestForNodeShutdown(t *testing.T) {
	for _, c := range []struct {
		name   string
		pod    *v1.Pod
		bucket int64
		want   int64
	}{
		{"nil pod", nil, 20, 20},
		{"no spec", &v1.Pod{}, 20, 20},
		{"shorter spec", podWithSpecAndDeletion(ptr.To(int64(5)), nil), 20, 5},
		{"equal spec", podWithSpecAndDeletion(ptr.To(int64(20)), nil), 20, 20},
		{"longer spec", podWithSpecAndDeletion(ptr.To(int64(30)), nil), 20, 20},
		{"spec of 0", podWithSpecAndDeletion(ptr.To(int64(0)), nil), 20, 0},
		{"negative spec is returned unchanged", podWithSpecAndDeletion(ptr.To(int64(-1)), nil), 20, -1},
		{"deletion is ignored", podWithSpecAndDeletion(nil, ptr.To(int64(3))), 20, 20},
		{"bucket of 0", podWithSpecAndDeletion(ptr.To(int64(30)), nil), 0, 0},
		{"negative bucket", podWithSpecAndDeletion(ptr.To(int64(30)), nil), -4, -4},
		{"spec of min int64", podWithSpecAndDeletion(ptr.To(int64(math.MinInt64)), nil), math.MaxInt64, math.MinInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, graceperiod.ForNodeShutdown(c.pod, c.bucket))
		})
	}
}
