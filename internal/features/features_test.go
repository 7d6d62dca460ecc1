package features_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/features"
)

// all returns all features of the package.
func all() []featuregate.Feature {
	return []featuregate.Feature{
		features.PodLifecycleSleepAction,
		features.PodLifecycleSleepActionAllowZero,
		features.ContainerStopSignals,
		features.GracefulNodeShutdown,
		features.GracefulNodeShutdownBasedOnPodPriority,
		features.DaemonSetGracefulNodeShutdown,
	}
}

// oneMethodGate cannot list its features.
type oneMethodGate map[featuregate.Feature]bool

// Enabled reports whether the feature is in the map and on.
func (g oneMethodGate) Enabled(key featuregate.Feature) bool { return g[key] }

// If the gate does not have a feature, kubegrace's default counts. A gate that cannot list its features is
// asked, since nobody can tell whether it has one.
func TestDefaultsOfFeaturesThatTheGateDoesNotHave(t *testing.T) {
	for _, key := range all() {
		on := key != features.DaemonSetGracefulNodeShutdown // the only alpha feature
		require.Equal(t, on, features.Enabled(nil, key), "nil gate, %s", key)
		require.Equal(t, on, features.Enabled(featuregate.NewFeatureGate(), key), "gate without %s", key)
		require.False(t, features.Enabled(oneMethodGate{}, key), "the gate's own value, %s", key)
	}
}

// The embedder has added one feature with a default of its own, which stays. All features can be switched.
func TestAddDoesNotReplaceFeaturesOfTheGate(t *testing.T) {
	gate := featuregate.NewFeatureGate()
	require.NoError(t, gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		features.ContainerStopSignals: {Default: false, PreRelease: featuregate.Alpha},
	}))
	require.NoError(t, features.Add(gate, all()...))
	require.False(t, features.Enabled(gate, features.ContainerStopSignals), "the embedder's default stays")

	for _, key := range all() {
		require.NoError(t, gate.SetFromMap(map[string]bool{string(key): false}))
		require.False(t, features.Enabled(gate, key))
		require.NoError(t, gate.SetFromMap(map[string]bool{string(key): true}))
		require.True(t, features.Enabled(gate, key))
	}
}

// Nothing can be added to a closed gate. A gate that has all features already is no error.
func TestAddToAClosedGate(t *testing.T) {
	complete, empty := featuregate.NewFeatureGate(), featuregate.NewFeatureGate()
	require.NoError(t, features.Add(complete, all()...))
	complete.Close()
	empty.Close()
	require.NoError(t, features.Add(complete, all()...), "nothing to add")
	require.ErrorContains(t, features.Add(empty, all()...), "failed to add feature gates")
}

// A feature that kubegrace does not know is an error.
func TestAddAnUnknownFeature(t *testing.T) {
	gate := featuregate.NewFeatureGate()
	require.ErrorContains(t, features.Add(gate, "Nonsense"), `"Nonsense"`)
}
