package graceperiod_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// The first of these that is set decides: the deletion, the grace period of the probe that failed, the
// spec, the minimum of 2 s. The probes have 10 s (startup) and 20 s (liveness).
func TestForContainer(t *testing.T) {
	probed := containerWithProbes("app", ptr.To(int64(10)), ptr.To(int64(20)))
	for _, c := range []struct {
		name      string
		pod       *v1.Pod
		container *v1.Container
		reason    graceperiod.KillReason
		want      int64
	}{
		{"nil pod and container", nil, nil, "", 2},
		{"nil pod, probe", nil, &probed, graceperiod.ReasonLivenessProbe, 2},
		{"empty pod", &v1.Pod{}, &probed, graceperiod.ReasonUnknown, 2},
		{"nil container", podWithSpecAndDeletion(ptr.To(int64(30)), nil), nil, graceperiod.ReasonLivenessProbe, 30},
		{"no probe", podWithSpecAndDeletion(ptr.To(int64(30)), nil), &v1.Container{}, graceperiod.ReasonStartupProbe, 30},
		{"deletion overrides spec", podWithSpecAndDeletion(ptr.To(int64(30)), ptr.To(int64(5))), &probed, graceperiod.ReasonUnknown, 5},
		{"deletion overrides probe", podWithSpecAndDeletion(ptr.To(int64(30)), ptr.To(int64(5))), &probed, graceperiod.ReasonLivenessProbe, 5},
		{"deletion of 0", podWithSpecAndDeletion(ptr.To(int64(30)), ptr.To(int64(0))), &probed, graceperiod.ReasonStartupProbe, 0},
		{"deletion without spec", podWithSpecAndDeletion(nil, ptr.To(int64(7))), &probed, graceperiod.ReasonUnknown, 7},
		{"probe without spec", podWithSpecAndDeletion(nil, nil), &probed, graceperiod.ReasonLivenessProbe, 2},
		{"startup probe", podWithSpecAndDeletion(ptr.To(int64(30)), nil), &probed, graceperiod.ReasonStartupProbe, 10},
		{"liveness probe", podWithSpecAndDeletion(ptr.To(int64(30)), nil), &probed, graceperiod.ReasonLivenessProbe, 20},
		{"postStart hook", podWithSpecAndDeletion(ptr.To(int64(30)), nil), &probed, graceperiod.ReasonFailedPostStartHook, 30},
		{"unknown reason", podWithSpecAndDeletion(ptr.To(int64(30)), nil), &probed, "Preempted", 30},
		{"spec of 0", podWithSpecAndDeletion(ptr.To(int64(0)), nil), &probed, graceperiod.ReasonUnknown, 0},
		{"spec of min int64", podWithSpecAndDeletion(ptr.To(int64(math.MinInt64)), nil), &probed, graceperiod.ReasonUnknown, math.MinInt64},
		{"spec of max int64", podWithSpecAndDeletion(ptr.To(int64(math.MaxInt64)), nil), &probed, graceperiod.ReasonUnknown, math.MaxInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, graceperiod.ForContainer(c.pod, c.container, c.reason))
		})
	}
}
