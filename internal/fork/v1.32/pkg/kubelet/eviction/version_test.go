package eviction

import (
	"testing"

	"github.com/stretchr/testify/require"

	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	"k8s.io/kubernetes/pkg/vectors"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The deprecated gate makes what the kubelet computes count, which is the maximum then.
func TestMaximumThatOverwrites(t *testing.T) {
	vectors.SetGate(t, kubegrace.Termination, true)
	vectors.SetGate(t, features.AllowOverwriteTerminationGracePeriodSeconds, true)
	m := &managerImpl{config: Config{MaxPodGracePeriodSeconds: 100}}
	require.EqualValues(t, 100, m.softGracePeriod(shutdowntest.Pod("web", 0, 5), 100))
}
