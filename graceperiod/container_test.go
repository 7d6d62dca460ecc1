package graceperiod_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// A nil pod has no grace period, so its containers have the minimum of 2 s. A nil container has no probe, so the pod's
// 30 s decide. TestForContainerAtEdgeValues has the other cases.
func TestForContainerWithoutPodOrContainer(t *testing.T) {
	probed := containerWithProbes("app", seconds(10), seconds(20))
	pod := podWithSpecAndDeletion(seconds(30), nil)
	for _, c := range []struct {
		name      string
		pod       *v1.Pod
		container *v1.Container
		want      int64 // in seconds
	}{
		{name: "nil pod and container", pod: nil, container: nil, want: 2},
		{name: "nil pod", pod: nil, container: &probed, want: 2},
		{name: "nil container", pod: pod, container: nil, want: 30},
		{name: "no probe", pod: pod, container: &v1.Container{}, want: 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, graceperiod.ForContainer(c.pod, c.container, graceperiod.ReasonLivenessProbe))
		})
	}
}
