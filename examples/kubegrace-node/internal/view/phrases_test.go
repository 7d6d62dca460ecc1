package view

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// A pod that runs says so, or that it waits for its bucket while a shutdown is under way. A pod whose
// container was left running is not called gone.
func TestDoing(t *testing.T) {
	for want, p := range map[string]Pod{
		"runs":                               {State: Running},
		"not stopped after 3s: left running": gonePod("a", endedContainer(lifecycle.OutcomeLeftRunning)),
		"not known":                          {},
	} {
		require.Equal(t, want, p.doing(false))
	}
	require.Equal(t, "runs until it is its bucket's turn", Pod{State: Running}.doing(true))
}
