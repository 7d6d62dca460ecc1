package graceperiod_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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

// A delete without options is not graceful, and has 0 s. A nil pod is on no node, so it has 0 s too, whatever is requested.
// TestForDeleteAtEdgeValues has the other cases.
func TestForDeleteWithoutPodOrOptions(t *testing.T) {
	for _, c := range []struct {
		name     string
		pod      *v1.Pod
		options  *metav1.DeleteOptions
		graceful bool
	}{
		{name: "nil pod and options", pod: nil, options: nil, graceful: false},
		{name: "nil options", pod: scheduledPod(seconds(30)), options: nil, graceful: false},
		{name: "nil pod", pod: nil, options: deleteOptions(seconds(9)), graceful: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			seconds, graceful := graceperiod.ForDelete(c.pod, c.options)
			require.Zero(t, seconds)
			require.Equal(t, c.graceful, graceful)
		})
	}
}

// A delete without options, or of another object than a pod, is not graceful, and its options stay as they are.
func TestCheckGracefulDeleteWithoutPodOrOptions(t *testing.T) {
	var strategy graceperiod.PodDeleteStrategy
	require.False(t, strategy.CheckGracefulDelete(t.Context(), scheduledPod(seconds(30)), nil))
	for name, other := range map[string]runtime.Object{"node": &v1.Node{}, "nil": nil} {
		options := deleteOptions(seconds(-3))
		require.False(t, strategy.CheckGracefulDelete(t.Context(), other, options), name)
		require.Equal(t, deleteOptions(seconds(-3)), options, name)
	}
}

// CheckGracefulDelete writes the pod's own grace period, 30 s, into the options of its delete. They share no pointer: changing
// the options then does not change the pod.
func TestCheckGracefulDelete(t *testing.T) {
	pod, options := scheduledPod(seconds(30)), deleteOptions(nil)
	require.True(t, graceperiod.PodDeleteStrategy{}.CheckGracefulDelete(t.Context(), pod, options))
	require.Equal(t, deleteOptions(seconds(30)), options)
	*options.GracePeriodSeconds = 5
	require.Equal(t, scheduledPod(seconds(30)), pod)
}

// A nil pod is not scheduled, so CheckGracefulDelete gives it 0 s.
func TestCheckGracefulDeleteOfANilPod(t *testing.T) {
	options := deleteOptions(nil)
	require.True(t, graceperiod.PodDeleteStrategy{}.CheckGracefulDelete(t.Context(), (*v1.Pod)(nil), options))
	require.Equal(t, deleteOptions(seconds(0)), options)
}
