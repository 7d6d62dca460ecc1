package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// gateWithout is a gate with one feature off.
type gateWithout struct {
	featuregate.FeatureGate // nil: only Enabled is called
	off                     featuregate.Feature
}

func (g gateWithout) Enabled(key featuregate.Feature) bool { return key != g.off }

// AddFeatureGates makes every feature known to an agent's gate, so that its flag can set them.
func TestAddFeatureGates(t *testing.T) {
	gate := featuregate.NewFeatureGate()
	require.NoError(t, lifecycle.AddFeatureGates(gate))
	for _, feature := range []featuregate.Feature{
		lifecycle.PodLifecycleSleepAction, "PodLifecycleSleepActionAllowZero", lifecycle.ContainerStopSignals,
	} {
		require.Contains(t, gate.GetAll(), feature)
	}
}
