package pod

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/vectors"
)

// The cases of the API server's TestCheckGracefulDelete. Each delete of a pod is graceful, and its options then have the
// grace period that the case wants.
func TestCheckGracefulDeleteVectors(t *testing.T) {
	cases := vectors.Read[struct {
		FirstDelete struct {
			Cases []struct {
				Name, Node, Phase string
				TGPS, Opt         *int64 // the grace period of the pod's spec, and of the delete
				Want              int64  // the grace period of the delete afterwards
			}
		} `json:"check_graceful_delete"`
	}](t, "graceperiod/testdata/vectors.yaml").FirstDelete.Cases
	require.Len(t, cases, 6)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			pod := &core.Pod{Spec: core.PodSpec{NodeName: c.Node, TerminationGracePeriodSeconds: c.TGPS}, Status: core.PodStatus{Phase: core.PodPhase(c.Phase)}}
			options := &metav1.DeleteOptions{GracePeriodSeconds: c.Opt}
			require.True(t, podStrategy{}.CheckGracefulDelete(t.Context(), pod.DeepCopyObject(), options))
			require.Equal(t, &c.Want, options.GracePeriodSeconds)
		})
	}
}

// A pod that has ended has a grace period of 30 s in its spec. Its delete is graceful, with 0 s.
func TestCheckGracefulDeleteOfAPodThatHasEnded(t *testing.T) {
	for _, phase := range []core.PodPhase{core.PodSucceeded, core.PodFailed} {
		options := &metav1.DeleteOptions{}
		pod := &core.Pod{Spec: core.PodSpec{NodeName: "node", TerminationGracePeriodSeconds: vectors.Seconds(30)}, Status: core.PodStatus{Phase: phase}}
		require.True(t, podStrategy{}.CheckGracefulDelete(t.Context(), pod, options))
		require.Equal(t, vectors.Seconds(0), options.GracePeriodSeconds)
	}
}

// A delete without options is not graceful.
func TestCheckGracefulDeleteWithoutOptions(t *testing.T) {
	require.False(t, podStrategy{}.CheckGracefulDelete(t.Context(), &core.Pod{}, nil))
}
