package metrics_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/metrics"
)

// constructors are those of both handles.
func constructors() map[string]func(prometheus.Registerer, metrics.Options) error {
	return map[string]func(prometheus.Registerer, metrics.Options) error{
		"lifecycle": func(reg prometheus.Registerer, opts metrics.Options) error {
			_, err := metrics.NewLifecycle(reg, opts)
			return err
		},
		"shutdown": func(reg prometheus.Registerer, opts metrics.Options) error {
			_, err := metrics.NewShutdown(reg, opts)
			return err
		},
	}
}

func TestDuplicateIsAnErrorAndChangesNothing(t *testing.T) {
	for name, construct := range constructors() {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewPedanticRegistry()
			require.NoError(t, construct(reg, metrics.Options{}))
			before, err := reg.Gather()
			require.NoError(t, err)

			err = construct(reg, metrics.Options{})
			require.ErrorContains(t, err, "failed to register metrics: ")
			var already prometheus.AlreadyRegisteredError
			require.ErrorAs(t, err, &already)

			after, err := reg.Gather()
			require.NoError(t, err)
			require.Len(t, after, len(before))
			require.NoError(t, construct(reg, metrics.Options{Namespace: "agent"}))
		})
	}
}

// One series that is taken is enough to register none, and it is not taken away
// from its owner.
func TestSeriesThatIsTakenRegistersNone(t *testing.T) {
	taken := map[string]string{
		"lifecycle": "kubelet_pod_termination_grace_period_exceeded_total",
		"shutdown":  "kubelet_graceful_shutdown_end_time_seconds",
	}
	for name, construct := range constructors() {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewPedanticRegistry()
			theirs := prometheus.NewCounter(prometheus.CounterOpts{Name: taken[name], Help: "of a kubelet"})
			require.NoError(t, reg.Register(theirs))

			require.ErrorContains(t, construct(reg, metrics.Options{}), taken[name])
			families, err := reg.Gather()
			require.NoError(t, err)
			require.Len(t, families, 1)
			require.Equal(t, taken[name], families[0].GetName())
		})
	}
}

func TestNilRegistererTakesAnyNumberOfHandles(t *testing.T) {
	for _, construct := range constructors() {
		require.NoError(t, construct(nil, metrics.Options{}))
		require.NoError(t, construct(nil, metrics.Options{}))
	}
}
