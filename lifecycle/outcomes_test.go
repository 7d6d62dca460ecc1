package lifecycle_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/metrics"
)

// The metrics have a label for each outcome of this package. A value that they do not know is counted as
// "other".
func TestMetricsKnowAllOutcomes(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	pods, err := metrics.NewLifecycle(registry, metrics.Options{})
	require.NoError(t, err)
	node, err := metrics.NewShutdown(registry, metrics.Options{})
	require.NoError(t, err)
	terminated, killed := map[string]bool{"other": true}, map[string]bool{"Other": true}
	for _, o := range append(lifecycle.Outcomes(), "Gone") {
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
	require.Empty(t, terminated)
	require.Empty(t, killed)
}

// An outcome that this version does not know must not be taken for a success.
func TestUnknownOutcomeIsTheWorst(t *testing.T) {
	for _, o := range lifecycle.Outcomes() {
		result := lifecycle.Result{Containers: []lifecycle.ContainerResult{{Outcome: o}, {Outcome: "Gone"}, {Outcome: o}}}
		require.Equal(t, lifecycle.Outcome("Gone"), result.Outcome())
	}
}
