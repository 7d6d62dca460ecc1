package kubeletconfig

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/component-base/featuregate"
)

// SetFeatureGates sets the feature gates of a configuration file. Call it after the command line has been
// parsed: a feature that the command line sets stays as it is. A kubelet's file may set features that gate
// does not know. They are skipped, and their names are returned in alphabetical order.
func SetFeatureGates(gate featuregate.MutableVersionedFeatureGate, values map[string]bool) (unknown []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, known := gate.GetAll()[featuregate.Feature(name)]; !known {
			unknown = append(unknown, name)
		} else if !gate.ExplicitlySet(featuregate.Feature(name)) {
			err = errors.Join(err, gate.SetFromMap(map[string]bool{name: values[name]}))
		}
	}
	return unknown, err
}
