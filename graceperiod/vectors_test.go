package graceperiod_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// vectors is testdata/vectors.yaml.
type vectors struct {
	Container struct {
		Cases []struct {
			Name                string
			TGPS, Live, Startup *int64
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
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.yaml")
	require.NoError(t, err)
	var all vectors
	require.NoError(t, yaml.Unmarshal(data, &all))
	return all
}

func TestVectorsForContainer(t *testing.T) {
	cases := readVectors(t).Container.Cases
	require.Len(t, cases, 11)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			pod := podOf(container("app", c.Startup, c.Live))
			pod.Spec.TerminationGracePeriodSeconds = c.TGPS
			require.Equal(t, c.Want, graceperiod.ForContainer(pod, &pod.Spec.Containers[0], c.Reason))
		})
	}
}

func TestVectorsForPod(t *testing.T) {
	cases := readVectors(t).Pod.Cases
	require.Len(t, cases, 5)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			seconds, shortened := graceperiod.ForPod(podWith(c.Spec, c.Deletion), 0, c.Override)
			require.Equal(t, c.Want, seconds)
			require.False(t, shortened, "nothing was given before")
		})
	}
}

// podWith is a pod with these two graces, nil being unset.
func podWith(spec, deletion *int64) *v1.Pod {
	pod := &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: spec}}
	pod.DeletionGracePeriodSeconds = deletion
	return pod
}

// podOf is a pod of these containers.
func podOf(containers ...v1.Container) *v1.Pod {
	return &v1.Pod{Spec: v1.PodSpec{Containers: containers}}
}

// container is one with these probe-level graces, nil being a probe without.
func container(name string, startup, liveness *int64) v1.Container {
	return v1.Container{
		Name:          name,
		StartupProbe:  &v1.Probe{TerminationGracePeriodSeconds: startup},
		LivenessProbe: &v1.Probe{TerminationGracePeriodSeconds: liveness},
	}
}
