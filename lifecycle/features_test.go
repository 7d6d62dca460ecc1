package lifecycle_test

import "k8s.io/component-base/featuregate"

// off is a gate in which only one feature is off.
type off featuregate.Feature

func (o off) Enabled(key featuregate.Feature) bool { return key != featuregate.Feature(o) }
