package config

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/component-base/featuregate"
)

// Gate is a feature gate that can tell what was set on it by name;
// featuregate.NewFeatureGate gives one.
type Gate interface {
	GetAll() map[featuregate.Feature]featuregate.FeatureSpec
	SetFromMap(values map[string]bool) error
	ExplicitlySet(name featuregate.Feature) bool
}

// SetFeatureGates sets the gates of a configuration file, after those of the
// command line: what was set there stays. A real kubelet's file has gates that
// the agent does not know; they are not set, and returned by name, sorted.
func SetFeatureGates(gate Gate, values map[string]bool) (unknown []string, err error) {
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
