package lifecycle_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// order is from best to worst. The outcome of a pod is the worst of its containers; "" (not ended) is worse
// than all.
func TestOutcomeOfAPodIsItsWorst(t *testing.T) {
	order := []lifecycle.Outcome{
		lifecycle.OutcomeGraceful, lifecycle.OutcomeNotFound, lifecycle.OutcomeGraceExceeded,
		lifecycle.OutcomeForced, lifecycle.OutcomeRuntimeStuck, lifecycle.OutcomeLeftRunning, "",
	}
	require.Equal(t, lifecycle.OutcomeNotFound, lifecycle.Result{}.Outcome())
	for i, worse := range order {
		for _, better := range order[:i+1] {
			result := lifecycle.Result{Containers: []lifecycle.ContainerResult{{Outcome: better}, {Outcome: worse}, {Outcome: better}}}
			require.Equal(t, worse, result.Outcome())
		}
	}
}

// Err is about containers that may still run. A forced one has ended, so its error is only in its own
// result.
func TestErrJoinsOnlyContainersThatMayRun(t *testing.T) {
	forced, stuck, left := errors.New("forced"), errors.New("stuck"), errors.New("left")
	result := lifecycle.Result{Containers: []lifecycle.ContainerResult{
		{Outcome: lifecycle.OutcomeForced, Err: forced},
		{Outcome: lifecycle.OutcomeRuntimeStuck, Err: stuck},
		{Outcome: lifecycle.OutcomeLeftRunning, Err: left},
		{Outcome: lifecycle.OutcomeGraceful},
	}}
	require.ErrorIs(t, result.Err(), stuck)
	require.ErrorIs(t, result.Err(), left)
	require.NotErrorIs(t, result.Err(), forced)
	require.NoError(t, lifecycle.Result{}.Err())
}
