package lifecycle_test

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/metrics"
)

// The outcome of a pod is the worst outcome of its containers. The variable order lists the outcomes from best to worst; the
// last is "", of a container that has not ended. An outcome that this version does not know, here "Gone", counts as worse
// than all known ones, so that it is never taken for a success.
func TestOutcomeOfAPodIsItsWorst(t *testing.T) {
	order := []lifecycle.Outcome{
		lifecycle.OutcomeGraceful, lifecycle.OutcomeNotFound, lifecycle.OutcomeGraceExceeded,
		lifecycle.OutcomeForced, lifecycle.OutcomeRuntimeStuck, lifecycle.OutcomeLeftRunning, "",
	}
	require.Equal(t, lifecycle.OutcomeNotFound, lifecycle.Result{}.Outcome())
	requireWorst := func(worse, better lifecycle.Outcome) {
		result := lifecycle.Result{Containers: []lifecycle.ContainerResult{{Outcome: better}, {Outcome: worse}, {Outcome: better}}}
		require.Equal(t, worse, result.Outcome())
	}
	for i, worse := range order {
		for _, better := range order[:i+1] {
			requireWorst(worse, better)
		}
	}
	for _, known := range lifecycle.Outcomes {
		requireWorst("Gone", known)
	}
}

// Result.Err joins the errors of containers that may still run. A container that was Forced has ended, so its error is only
// in its own ContainerResult.
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

// Package metrics has a label for each outcome of this package. An outcome that it does not know, here "Gone", is counted
// as "other".
func TestMetricsKnowAllOutcomes(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	pods, err := metrics.NewLifecycle(registry, metrics.Options{})
	require.NoError(t, err)
	node, err := metrics.NewShutdown(registry, metrics.Options{})
	require.NoError(t, err)
	// The labels that the two metrics must have. Each one that is found is deleted.
	terminated, killed := map[string]bool{"other": true}, map[string]bool{"other": true}
	for _, o := range append(lifecycle.Outcomes, "Gone") {
		pods.PodTerminated(string(o), 0)
		node.PodKilled(string(o))
		if o != "Gone" {
			terminated[string(o)], killed[string(o)] = true, true
		}
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				switch {
				case family.GetName() == "kubelet_pod_termination_duration_seconds":
					require.True(t, terminated[label.GetValue()], label.GetValue())
					delete(terminated, label.GetValue())
				case family.GetName() == "kubelet_graceful_shutdown_pods_total" && m.GetCounter().GetValue() > 0:
					require.True(t, killed[label.GetValue()], label.GetValue())
					delete(killed, label.GetValue())
				}
			}
		}
	}
	const missing = "package metrics counts an outcome of this package as \"other\""
	require.Empty(t, terminated, missing)
	require.Empty(t, killed, missing)
}
