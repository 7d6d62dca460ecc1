package graceperiod_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// scheduledPod returns a running pod on a node with this grace period in its spec.
func scheduledPod(spec *int64) *v1.Pod {
	pod := podWithSpecAndDeletion(spec, nil)
	pod.Spec.NodeName = "node-1"
	pod.Status.Phase = v1.PodRunning
	return pod
}

// deleteOptions returns delete options with this grace period, nil for none.
func deleteOptions(seconds *int64) *metav1.DeleteOptions {
	return &metav1.DeleteOptions{GracePeriodSeconds: seconds}
}

// The grace period of the first delete: the options, else the spec, else 0. A pod that runs nowhere gets
// 0, and a negative value becomes 1. The arguments stay as they are.
func TestForDelete(t *testing.T) {
	succeeded := scheduledPod(ptr.To(int64(30)))
	succeeded.Status.Phase = v1.PodSucceeded
	for _, c := range []struct {
		name     string
		pod      *v1.Pod
		options  *metav1.DeleteOptions
		want     int64
		graceful bool
	}{
		{"nil pod and options", nil, nil, 0, false},
		{"nil options", scheduledPod(ptr.To(int64(30))), nil, 0, false},
		{"nil pod", nil, deleteOptions(ptr.To(int64(9))), 0, true},
		{"options", scheduledPod(ptr.To(int64(30))), deleteOptions(ptr.To(int64(90))), 90, true},
		{"options of 0", scheduledPod(ptr.To(int64(30))), deleteOptions(ptr.To(int64(0))), 0, true},
		{"options without a grace period", scheduledPod(ptr.To(int64(30))), deleteOptions(nil), 30, true},
		{"no grace period", scheduledPod(nil), deleteOptions(nil), 0, true},
		{"not scheduled", podWithSpecAndDeletion(ptr.To(int64(30)), nil), deleteOptions(nil), 0, true},
		{"not scheduled, negative", podWithSpecAndDeletion(ptr.To(int64(-30)), nil), deleteOptions(ptr.To(int64(-1))), 0, true},
		{"finished", succeeded, deleteOptions(ptr.To(int64(9))), 0, true},
		{"negative options", scheduledPod(ptr.To(int64(30))), deleteOptions(ptr.To(int64(-1))), 1, true},
		{"negative spec", scheduledPod(ptr.To(int64(math.MinInt64))), deleteOptions(nil), 1, true},
		{"max int64", scheduledPod(nil), deleteOptions(ptr.To(int64(math.MaxInt64))), math.MaxInt64, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod, options := c.pod.DeepCopy(), c.options.DeepCopy()
			seconds, graceful := graceperiod.ForDelete(c.pod, c.options)
			require.Equal(t, c.want, seconds)
			require.Equal(t, c.graceful, graceful)
			require.Equal(t, pod, c.pod)
			require.Equal(t, options, c.options)
		})
	}
}

// DeleteSeconds returns the same as ForDelete.
func TestDeleteSeconds(t *testing.T) {
	for _, c := range []struct {
		name                  string
		spec, requested       *int64
		scheduled, terminated bool
		want                  int64
	}{
		{"no grace period", nil, nil, true, false, 0},
		{"spec", ptr.To(int64(30)), nil, true, false, 30},
		{"longer request", ptr.To(int64(30)), ptr.To(int64(90)), true, false, 90},
		{"request of 0", ptr.To(int64(30)), ptr.To(int64(0)), true, false, 0},
		{"negative request", ptr.To(int64(30)), ptr.To(int64(-5)), true, false, 1},
		{"not scheduled", ptr.To(int64(30)), ptr.To(int64(-5)), false, false, 0},
		{"finished", ptr.To(int64(30)), ptr.To(int64(9)), true, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			seconds, graceful := graceperiod.DeleteSeconds(c.spec, c.requested, c.scheduled, c.terminated)
			require.Equal(t, c.want, seconds)
			require.True(t, graceful)
		})
	}
}

// CheckGracefulDelete writes the grace period into the options of a pod's delete. It leaves the options of
// other objects alone.
func TestCheckGracefulDelete(t *testing.T) {
	var strategy graceperiod.PodDeleteStrategy
	require.False(t, strategy.CheckGracefulDelete(t.Context(), scheduledPod(ptr.To(int64(30))), nil), "nil options")

	for name, other := range map[string]runtime.Object{"node": &v1.Node{}, "nil": nil} {
		options := deleteOptions(ptr.To(int64(-3)))
		require.False(t, strategy.CheckGracefulDelete(t.Context(), other, options), name)
		require.Equal(t, deleteOptions(ptr.To(int64(-3))), options, name)
	}

	pod, options := scheduledPod(ptr.To(int64(30))), deleteOptions(nil)
	require.True(t, strategy.CheckGracefulDelete(t.Context(), pod, options))
	require.Equal(t, deleteOptions(ptr.To(int64(30))), options)
	*options.GracePeriodSeconds = 5
	require.Equal(t, scheduledPod(ptr.To(int64(30))), pod, "the options share no pointer with the pod")

	options = deleteOptions(nil)
	require.True(t, strategy.CheckGracefulDelete(t.Context(), (*v1.Pod)(nil), options), "a nil pod is not scheduled")
	require.Equal(t, deleteOptions(ptr.To(int64(0))), options)
}
