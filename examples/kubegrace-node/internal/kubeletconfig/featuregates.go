package kubeletconfig

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/component-base/featuregate"
)

// SetFeatureGates sets the feature gates of a configuration file. Call it after the command line has been
// parsed: a feature that the command line sets stays as it is. A kubelet's file may set features that gate
// does not know. They are skipped, and their names are returned in alphabetical order.
func SetFeatureGates(gate featuregate.MutableVersionedFeatureGate, values map[string]bool) (unknown []string, err error) {
	known := gate.GetAll()
	values = maps.Clone(values)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		key := featuregate.Feature(name)
		if _, ok := known[key]; !ok {
			unknown = append(unknown, name)
			delete(values, name)
			continue
		}
		if gate.ExplicitlySet(key) {
			delete(values, name)
		}
	}
	if err := gate.SetFromMap(values); err != nil {
		return unknown, fmt.Errorf("featureGates: %w", err)
	}
	return unknown, nil
}
