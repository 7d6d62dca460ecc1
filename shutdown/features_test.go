package shutdown_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/shutdown"
)

// AddFeatureGates adds the gates with the kubelet's defaults, and may be called twice.
func TestAddFeatureGatesKeepsExistingGates(t *testing.T) {
	gate := featuregate.NewFeatureGate()
	require.NoError(t, shutdown.AddFeatureGates(gate))
	require.NoError(t, shutdown.AddFeatureGates(gate), "they are there already")
	require.True(t, gate.Enabled(shutdown.GracefulNodeShutdown))
	require.True(t, gate.Enabled(shutdown.GracefulNodeShutdownBasedOnPodPriority))
	require.False(t, gate.Enabled(shutdown.DaemonSetGracefulNodeShutdown), "it is alpha")
}
