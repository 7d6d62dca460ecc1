// Package vectors reads the kubelet's test cases from the testdata of kubegrace's packages, and has helpers for the tests of
// this module.
package vectors

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/yaml"
)

// Read decodes a YAML file of kubegrace's repository. path is relative to the root of the repository, which is the folder
// above the first folder named internal that Read finds upwards from the test.
func Read[T any](t *testing.T, path string) T {
	t.Helper()
	folder, err := os.Getwd()
	require.NoError(t, err)
	for filepath.Base(folder) != "internal" {
		require.NotEqual(t, filepath.Dir(folder), folder, "the tests must run in the repository")
		folder = filepath.Dir(folder)
	}
	data, err := os.ReadFile(filepath.Join(filepath.Dir(folder), path))
	require.NoError(t, err)
	var vectors T
	require.NoError(t, yaml.Unmarshal(data, &vectors))
	return vectors
}

// Seconds returns a pointer to n.
func Seconds(n int64) *int64 { return &n }

// Events returns the recorded events and removes them from the recorder.
func Events(events *record.FakeRecorder) []string {
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

// SetGate sets a feature gate until the test ends.
func SetGate(t *testing.T, gate featuregate.Feature, on bool) {
	t.Helper()
	wasOn := utilfeature.DefaultFeatureGate.Enabled(gate)
	gates := utilfeature.DefaultMutableFeatureGate
	require.NoError(t, gates.SetFromMap(map[string]bool{string(gate): on}))
	t.Cleanup(func() { require.NoError(t, gates.SetFromMap(map[string]bool{string(gate): wasOn})) })
}
