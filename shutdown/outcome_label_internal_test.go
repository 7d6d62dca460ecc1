package shutdown

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

func TestOutcomeLabel(t *testing.T) {
	require.Equal(t, "Ended", outcomeLabel(kills.State{}))
	require.Equal(t, "Failed", outcomeLabel(kills.State{Err: errors.New("boom")}))
	require.Equal(t, "Killed", outcomeLabel(kills.State{Result: kills.Result{Outcome: "Killed"}, Err: errors.New("boom")}))
}
