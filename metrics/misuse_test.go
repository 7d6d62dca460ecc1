//go:build go1.25

package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/metrics"
)

// A handle that is nil or zero counts nothing, and no method panics.
func TestMethodsOfAZeroHandle(t *testing.T) {
	for _, pods := range []*metrics.Lifecycle{nil, {}} {
		require.NotPanics(t, func() { callEachMethod(pods) })
	}
	for _, node := range []*metrics.Shutdown{nil, {}} {
		require.NotPanics(t, func() {
			node.Times(time.Now(), time.Time{})
			node.Inhibitor(true)
			node.Delay(time.Second, time.Second)
			node.Bucket(time.Second)
			node.PodKilled("Graceful")
			node.PodsRefused(1)
		})
	}
}

// A registerer that holds a nil pointer is an error: the caller's registry was probably not made.
func TestANilPointerAsRegistererIsAnError(t *testing.T) {
	var nilRegistry *prometheus.Registry
	for _, construct := range constructors() {
		err := construct(nilRegistry, metrics.Options{})
		require.EqualError(t, err, "failed to register metrics: the registerer is a nil *prometheus.Registry: leave it out or set a value")
	}
}

// A Namespace with a dash is not valid in Prometheus. It is an error, and nothing is registered.
func TestAnInvalidNamespaceIsAnError(t *testing.T) {
	registry := prometheus.NewRegistry()
	for _, construct := range constructors() {
		err := construct(registry, metrics.Options{Namespace: "my-agent"})
		require.EqualError(t, err, `failed to register metrics: Options.Namespace "my-agent": must consist of letters, digits, underscores and colons, and not begin with a digit`)
	}
	registered, err := registry.Gather()
	require.NoError(t, err)
	require.Empty(t, registered)
}
