//go:build go1.25

package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/metrics"
)

// Each case is a mistake of a caller. It must either have no effect, or cause an error that names the mistake.
func TestMisuse(t *testing.T) {
	var nilRegistry *prometheus.Registry
	for name, do := range map[string]func(t *testing.T){
		"nil and zero Lifecycle": func(*testing.T) {
			for _, m := range []*metrics.Lifecycle{nil, {}} {
				callEachMethod(m)
			}
		},
		"nil and zero Shutdown": func(*testing.T) {
			for _, m := range []*metrics.Shutdown{nil, {}} {
				m.Times(time.Now(), time.Time{})
				m.Inhibitor(true)
				m.Delay(time.Second, time.Second)
				m.Bucket(time.Second)
				m.PodKilled("Graceful")
				m.PodsRefused(1)
			}
		},
		"a registerer that is a nil pointer": func(t *testing.T) {
			const want = "failed to register metrics: the registerer is a nil *prometheus.Registry: leave it out or set a value"
			_, err := metrics.NewLifecycle(nilRegistry, metrics.Options{})
			require.EqualError(t, err, want)
			_, err = metrics.NewShutdown(nilRegistry, metrics.Options{})
			require.EqualError(t, err, want)
		},
		"a Namespace with a dash": func(t *testing.T) {
			const want = `failed to register metrics: Options.Namespace "my-agent": must consist of letters, digits, underscores and colons, and not begin with a digit`
			registry := prometheus.NewRegistry()
			_, err := metrics.NewLifecycle(registry, metrics.Options{Namespace: "my-agent"})
			require.EqualError(t, err, want)
			_, err = metrics.NewShutdown(registry, metrics.Options{Namespace: "my-agent"})
			require.EqualError(t, err, want)
			registered, err := registry.Gather()
			require.NoError(t, err)
			require.Empty(t, registered)
		},
	} {
		t.Run(name, do)
	}
}
