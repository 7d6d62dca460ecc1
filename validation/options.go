package validation

import (
	"k8s.io/component-base/featuregate"
)

// FeatureGate answers whether a feature is on; a fork's DefaultFeatureGate is
// one. Where one is taken, nil means the default of every gate, which is on.
type FeatureGate interface {
	Enabled(key featuregate.Feature) bool
}
