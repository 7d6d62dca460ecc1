package lifecycle_test

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/metrics"
)

// The outcome of a pod is the worst outcome of its containers. "", of a container that has not ended, is worse than all others.
// Without containers the pod is NotFound.
func TestOutcomeOfAPodIsItsWorst(t *testing.T) {
	fromBestToWorst := []lifecycle.Outcome{
		lifecycle.OutcomeGraceful, lifecycle.OutcomeNotFound, lifecycle.OutcomeGraceExceeded,
		lifecycle.OutcomeForced, lifecycle.OutcomeRuntimeStuck, lifecycle.OutcomeLeftRunning, "",
	}
	for i, worse := range fromBestToWorst {
		for _, better := range fromBestToWorst[:i+1] {
			requireWorst(t, worse, better)
		}
	}
	require.Equal(t, lifecycle.OutcomeNotFound, lifecycle.Result{}.Outcome())
}

// An outcome that this version does not know, "Gone", is worse than all known ones, so that it is never taken for a success.
func TestUnknownOutcomeIsTheWorst(t *testing.T) {
	for _, known := range lifecycle.Outcomes {
		requireWorst(t, "Gone", known)
	}
}

// requireWorst checks that a pod has the outcome of the one container that ended worse than the others.
func requireWorst(t *testing.T, worse, better lifecycle.Outcome) {
	t.Helper()
	result := lifecycle.Result{Containers: []lifecycle.ContainerResult{{Outcome: better}, {Outcome: worse}, {Outcome: better}}}
	require.Equal(t, worse, result.Outcome())
}

// Result.Err joins the errors of containers that may still run. A container that was Forced has ended, so its error is only
// in its own ContainerResult.
func TestErrJoinsOnlyContainersThatMayRun(t *testing.T) {
	ofForced, ofStuck, ofLeftRunning := errors.New("forced"), errors.New("stuck"), errors.New("left running")
	result := lifecycle.Result{Containers: []lifecycle.ContainerResult{
		{Outcome: lifecycle.OutcomeForced, Err: ofForced},
		{Outcome: lifecycle.OutcomeRuntimeStuck, Err: ofStuck},
		{Outcome: lifecycle.OutcomeLeftRunning, Err: ofLeftRunning},
		{Outcome: lifecycle.OutcomeGraceful},
	}}
	require.ErrorIs(t, result.Err(), ofStuck)
	require.ErrorIs(t, result.Err(), ofLeftRunning)
	require.NotErrorIs(t, result.Err(), ofForced)
	require.NoError(t, lifecycle.Result{}.Err())
}

// The two metrics that count by outcome have a label for each outcome of this package. They count an outcome that they do not
// know, "Gone", as "other".
func TestMetricsKnowAllOutcomes(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	pods, err := metrics.NewLifecycle(registry, metrics.Options{})
	require.NoError(t, err)
	node, err := metrics.NewShutdown(registry, metrics.Options{})
	require.NoError(t, err)
	want := []string{"other"}
	for _, outcome := range lifecycle.Outcomes {
		want = append(want, string(outcome))
	}
	for _, outcome := range append(lifecycle.Outcomes, "Gone") {
		pods.PodTerminated(string(outcome), 0)
		node.PodKilled(string(outcome))
	}
	labels := map[string][]string{} // of the series that have counted, by the name of the metric
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if m.GetHistogram() != nil || m.GetCounter().GetValue() > 0 {
				for _, label := range m.GetLabel() {
					labels[family.GetName()] = append(labels[family.GetName()], label.GetValue())
				}
			}
		}
	}
	require.ElementsMatch(t, want, labels["kubelet_pod_termination_duration_seconds"])
	require.ElementsMatch(t, want, labels["kubelet_graceful_shutdown_pods_total"])
}
