package graceperiod_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// A nil pod has no grace period of its own. It gets the 20 s of the eviction or of the bucket. If the eviction has no
// limit, it gets the default of 30 s. TestOverridesAtEdgeValues has the other cases.
func TestOverridesWithoutPod(t *testing.T) {
	const noLimit = -1
	require.EqualValues(t, 20, graceperiod.ForSoftEviction(nil, 20))
	require.EqualValues(t, 30, graceperiod.ForSoftEviction(nil, noLimit))
	require.EqualValues(t, 20, graceperiod.ForNodeShutdown(nil, 20))
}

// The constants have the kubelet's values.
func TestConstantsOfTheKubelet(t *testing.T) {
	require.EqualValues(t, 1, graceperiod.ImmediateEvictionSeconds)
	require.EqualValues(t, 1, graceperiod.MinimumPodSeconds)
	require.EqualValues(t, 2, graceperiod.MinimumContainerSeconds)
	require.EqualValues(t, 30, graceperiod.DefaultSeconds)
}
