package fork

import (
	"log"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/shutdown"
)

// readVectors reads a file of the kubelet's own test cases, which are the testdata of the
// packages that the fork works with.
func readVectors[T any](t *testing.T, path string) T {
	t.Helper()
	data, err := os.ReadFile("../../" + path)
	require.NoError(t, err)
	var vectors T
	require.NoError(t, yaml.Unmarshal(data, &vectors))
	return vectors
}

// seconds returns a pointer, because the kubelet's grace periods are pointers.
func seconds(n int64) *int64 { return &n }

// recordedEvents returns the events of a recorder so far.
func recordedEvents(events *record.FakeRecorder) []string {
	var all []string
	for {
		select {
		case event := <-events.Events:
			all = append(all, event)
		default:
			return all
		}
	}
}

// TestMain registers the kubelet's own series first, as its metrics.Register does, and adds its
// feature gates, as its pkg/features does.
func TestMain(m *testing.M) {
	if err := shutdown.AddFeatureGates(utilfeature.DefaultMutableFeatureGate); err != nil {
		log.Panic(err)
	}
	gauge := func(name, help string) *metrics.Gauge {
		return metrics.NewGauge(&metrics.GaugeOpts{Subsystem: "kubelet", Name: name, Help: help, StabilityLevel: metrics.ALPHA})
	}
	legacyregistry.MustRegister(
		gauge("graceful_shutdown_start_time_seconds", "Last graceful shutdown start time since unix epoch in seconds"),
		gauge("graceful_shutdown_end_time_seconds", "Last graceful shutdown end time since unix epoch in seconds"),
	)
	m.Run()
}
