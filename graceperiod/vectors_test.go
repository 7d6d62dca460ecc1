package graceperiod_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// vectors is the content of testdata/vectors.yaml. TGPS is terminationGracePeriodSeconds of the spec. Live, Startup and Opt are
// the grace periods of the probes and of the delete options.
type vectors struct {
	Container struct {
		Cases []struct {
			Name                string
			TGPS, Live, Startup *int64 // the grace periods of the pod's spec and of the container's probes
			Reason              graceperiod.KillReason
			Want                int64
		}
	} `json:"set_termination_grace_period"`
	Pod struct {
		Cases []struct {
			Name                     string
			Spec, Deletion, Override *int64
			Want                     int64
		}
	} `json:"effective_grace_period"`
	FirstDelete struct {
		Cases []struct {
			Name      string
			Node      string
			Phase     v1.PodPhase
			TGPS, Opt *int64 // the grace periods of the pod's spec and of the delete options
			Want      int64
		}
	} `json:"check_graceful_delete"`
	RepeatedDelete struct {
		Columns []string
		Cases   [][]any // one value for each of Columns
	} `json:"before_delete"`
}

// readVectors reads the test cases in testdata/vectors.yaml, which come from the kubelet and the API
// server.
func readVectors(t *testing.T) vectors {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.yaml")
	require.NoError(t, err)
	var all vectors
	require.NoError(t, yaml.Unmarshal(data, &all))
	return all
}

// For each case of testdata/vectors.yaml, ForContainer returns what the kubelet's setTerminationGracePeriod returns (Want).
func TestVectorsForContainer(t *testing.T) {
	cases := readVectors(t).Container.Cases
	require.Len(t, cases, 11)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			pod := podOf(containerWithProbes("app", c.Startup, c.Live))
			pod.Spec.TerminationGracePeriodSeconds = c.TGPS
			require.Equal(t, c.Want, graceperiod.ForContainer(pod, &pod.Spec.Containers[0], c.Reason))
		})
	}
}

// For each case of testdata/vectors.yaml, ForPod returns what the kubelet's calculateEffectiveGracePeriod returns (Want). The
// pods have no current grace period, so nothing is shortened.
func TestVectorsForPod(t *testing.T) {
	cases := readVectors(t).Pod.Cases
	require.Len(t, cases, 5)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			seconds, shortened := graceperiod.ForPod(podWithSpecAndDeletion(c.Spec, c.Deletion), noCurrent, c.Override)
			require.Equal(t, c.Want, seconds)
			require.False(t, shortened)
		})
	}
}

// For each case of testdata/vectors.yaml, ForDelete and CheckGracefulDelete give the pod what the API server's
// CheckGracefulDelete gives it (Want). Only CheckGracefulDelete writes the result into the options.
func TestVectorsForDelete(t *testing.T) {
	cases := readVectors(t).FirstDelete.Cases
	require.Len(t, cases, 6)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			pod := podWithSpecAndDeletion(c.TGPS, nil)
			pod.Spec.NodeName, pod.Status.Phase = c.Node, c.Phase
			options := &metav1.DeleteOptions{GracePeriodSeconds: c.Opt}

			seconds, graceful := graceperiod.ForDelete(pod, options)
			require.Equal(t, c.Want, seconds)
			require.True(t, graceful)
			require.Equal(t, c.Opt, options.GracePeriodSeconds, "ForDelete writes nothing")

			require.True(t, graceperiod.PodDeleteStrategy{}.CheckGracefulDelete(t.Context(), pod, options))
			require.Equal(t, ptr.To(c.Want), options.GracePeriodSeconds)
		})
	}
}

// For each case of testdata/vectors.yaml, BeforeDelete does what the API server's rest.BeforeDelete does with a pod that has
// been deleted before. A case has the stored and the requested grace period, and then what both must become.
func TestVectorsForRepeatedDelete(t *testing.T) {
	group := readVectors(t).RepeatedDelete
	require.Equal(t, []string{"cur", "opt", "want_obj_grace", "want_opt_grace", "graceful", "pending"}, group.Columns)
	require.Len(t, group.Cases, 16)
	for _, row := range group.Cases {
		stored, requested := secondsIn(row[0]), secondsIn(row[1])
		wantStored, wantInOptions := secondsIn(row[2]), secondsIn(row[3])
		wantGraceful, wantPending := row[4], row[5]
		t.Run(fmt.Sprint(row[:2]...), func(t *testing.T) {
			pod, options := podEndingIn(0, stored), deleteOptions(requested)
			graceful, pending, err := graceperiod.BeforeDelete(pod, options, testTime())
			require.NoError(t, err)
			require.Equal(t, wantGraceful, graceful)
			require.Equal(t, wantPending, pending)
			require.Equal(t, wantStored, pod.DeletionGracePeriodSeconds)
			require.Equal(t, wantInOptions, options.GracePeriodSeconds)
		})
	}
}

// secondsIn returns a cell of the YAML file as a grace period.
func secondsIn(cell any) *int64 {
	return seconds(int64(cell.(float64)))
}

// podWithSpecAndDeletion returns a pod with these grace periods in its spec and metadata; nil is unset.
func podWithSpecAndDeletion(spec, deletion *int64) *v1.Pod {
	pod := &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: spec}}
	pod.DeletionGracePeriodSeconds = deletion
	return pod
}

// podOf returns a pod with these containers.
func podOf(containers ...v1.Container) *v1.Pod {
	return &v1.Pod{Spec: v1.PodSpec{Containers: containers}}
}

// containerWithProbes returns a container whose probes have these grace periods; nil is unset.
func containerWithProbes(name string, startup, liveness *int64) v1.Container {
	return v1.Container{
		Name:          name,
		StartupProbe:  &v1.Probe{TerminationGracePeriodSeconds: startup},
		LivenessProbe: &v1.Probe{TerminationGracePeriodSeconds: liveness},
	}
}
