package fork

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API server's TestCheckGracefulDelete.
func TestCheckGracefulDeleteVectors(t *testing.T) {
	cases := readVectors[struct {
		FirstDelete struct {
			Cases []struct {
				Name, Node, Phase string
				TGPS, Opt         *int64
				Want              int64
			}
		} `json:"check_graceful_delete"`
	}](t, "graceperiod/testdata/vectors.yaml").FirstDelete.Cases
	require.Len(t, cases, 6)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			pod := &apiPod{Spec: apiPodSpec{NodeName: c.Node, TerminationGracePeriodSeconds: c.TGPS}, Status: apiPodStatus{Phase: c.Phase}}
			options := &metav1.DeleteOptions{GracePeriodSeconds: c.Opt}
			require.True(t, podStrategy{}.CheckGracefulDelete(t.Context(), pod.DeepCopyObject(), options))
			require.Equal(t, &c.Want, options.GracePeriodSeconds)
		})
	}
	for _, phase := range []string{apiPodSucceeded, apiPodFailed} {
		options := &metav1.DeleteOptions{}
		pod := &apiPod{Spec: apiPodSpec{NodeName: "node", TerminationGracePeriodSeconds: seconds(30)}, Status: apiPodStatus{Phase: phase}}
		require.True(t, podStrategy{}.CheckGracefulDelete(t.Context(), pod, options))
		require.Equal(t, seconds(0), options.GracePeriodSeconds, "it has ended")
	}
	require.False(t, podStrategy{}.CheckGracefulDelete(t.Context(), &apiPod{}, nil))
}
