package kubeletconfig_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubeletconfig"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// The command line overrides the file, the file overrides the default, and gates of other components are
// returned as unknown.
func TestSetFeatureGates(t *testing.T) {
	gate := featuregate.NewFeatureGate()
	require.NoError(t, lifecycle.AddFeatureGates(gate))
	require.NoError(t, shutdown.AddFeatureGates(gate))
	require.NoError(t, gate.Set("GracefulNodeShutdown=true")) // the command line

	unknown, err := kubeletconfig.SetFeatureGates(gate, map[string]bool{
		"GracefulNodeShutdown":    false,
		"PodLifecycleSleepAction": false,
		"ZNotOurs":                true,
		"AlsoNotOurs":             false,
	})
	require.NoError(t, err)
	require.Equal(t, []string{"AlsoNotOurs", "ZNotOurs"}, unknown)
	require.True(t, gate.Enabled(shutdown.GracefulNodeShutdown), "the command line overrides the file")
	require.False(t, gate.Enabled(lifecycle.PodLifecycleSleepAction), "the file counts")
	require.True(t, gate.Enabled(shutdown.GracefulNodeShutdownBasedOnPodPriority), "the default stays")
}
