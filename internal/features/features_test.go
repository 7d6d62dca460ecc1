package features_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/features"
)

// allFeatures returns all features of the package.
func allFeatures() []featuregate.Feature {
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

// If there is no gate, or the gate does not have a feature, kubegrace's default counts. A gate that cannot list its features
// gives its own value, because nobody can tell whether it has a feature. The value is off here.
func TestDefaultsOfFeaturesThatTheGateDoesNotHave(t *testing.T) {
	for _, key := range allFeatures() {
		isOnByDefault := key != features.DaemonSetGracefulNodeShutdown // the only alpha feature
		require.Equal(t, isOnByDefault, features.Enabled(nil, key), "nil gate, %s", key)
		require.Equal(t, isOnByDefault, features.Enabled(featuregate.NewFeatureGate(), key), "gate without %s", key)
		require.False(t, features.Enabled(oneMethodGate{}, key), "the gate's own value, %s", key)
	}
}

// The embedder has added one feature to the gate, with a default of its own. Add keeps this default. All features can
// be switched on and off.
func TestAddDoesNotReplaceFeaturesOfTheGate(t *testing.T) {
	gate := featuregate.NewFeatureGate()
	require.NoError(t, gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		features.ContainerStopSignals: {Default: false, PreRelease: featuregate.Alpha},
	}))
	require.NoError(t, features.Add(gate, allFeatures()...))
	require.False(t, features.Enabled(gate, features.ContainerStopSignals), "the embedder's default stays")

	for _, key := range allFeatures() {
		require.NoError(t, gate.SetFromMap(map[string]bool{string(key): false}))
		require.False(t, features.Enabled(gate, key))
		require.NoError(t, gate.SetFromMap(map[string]bool{string(key): true}))
		require.True(t, features.Enabled(gate, key))
	}
}

// No feature can be added to a closed gate. If the gate already has all features, this is no error.
func TestAddToAClosedGate(t *testing.T) {
	complete, empty := featuregate.NewFeatureGate(), featuregate.NewFeatureGate()
	require.NoError(t, features.Add(complete, allFeatures()...))
	complete.Close()
	empty.Close()
	require.NoError(t, features.Add(complete, allFeatures()...), "nothing to add")
	require.ErrorContains(t, features.Add(empty, allFeatures()...), "failed to add feature gates")
}

// A feature that kubegrace does not know is an error.
func TestAddAnUnknownFeature(t *testing.T) {
	gate := featuregate.NewFeatureGate()
	require.ErrorContains(t, features.Add(gate, "Nonsense"), `"Nonsense"`)
}
