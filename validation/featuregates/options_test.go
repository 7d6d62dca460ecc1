package featuregates_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/validation"
	"github.com/kubegrace/kubegrace/validation/featuregates"
)

// gateWith returns a gate with these features, on or off.
func gateWith(tb testing.TB, on map[string]bool) featuregate.FeatureGate {
	tb.Helper()
	gate := featuregate.NewFeatureGate()
	for name, enabled := range on {
		require.NoError(tb, gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
			featuregate.Feature(name): {Default: enabled, PreRelease: featuregate.Beta},
		}))
	}
	return gate
}

// A feature that the gate does not have is on, and without a gate all features are on, because Kubernetes removes the
// gates of stable features.
func TestAFeatureThatTheGateDoesNotHaveIsOn(t *testing.T) {
	require.Zero(t, featuregates.Options(nil))
	require.Zero(t, featuregates.Options(featuregate.NewFeatureGate()))
}

// Each gate that is off sets exactly one option, whether the other gates exist or not.
func TestEachGateHasItsOption(t *testing.T) {
	all := map[string]validation.Options{
		"PodLifecycleSleepAction":                {NoSleepAction: true},
		"PodLifecycleSleepActionAllowZero":       {NoZeroSleep: true},
		"ContainerStopSignals":                   {NoStopSignals: true},
		"GracefulNodeShutdown":                   {NoGracefulNodeShutdown: true},
		"GracefulNodeShutdownBasedOnPodPriority": {NoShutdownByPodPriority: true},
	}
	for name, want := range all {
		require.Equal(t, want, featuregates.Options(gateWith(t, map[string]bool{name: false})), "%s is off, the gate has no others", name)
		on := map[string]bool{}
		for other := range all {
			on[other] = other != name
		}
		require.Equal(t, want, featuregates.Options(gateWith(t, on)), "%s is off, the others are on", name)
	}
}

// The gate changes after Options was called. The result of the call does not change.
func TestOptionsAreASnapshotOfTheGate(t *testing.T) {
	gate := featuregate.NewFeatureGate()
	require.NoError(t, gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{"ContainerStopSignals": {Default: true, PreRelease: featuregate.Beta}}))
	opts := featuregates.Options(gate)
	require.NoError(t, gate.SetFromMap(map[string]bool{"ContainerStopSignals": false}))
	require.Zero(t, opts)
	require.Equal(t, validation.Options{NoStopSignals: true}, featuregates.Options(gate))
}
