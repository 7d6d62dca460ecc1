package view

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
)

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
