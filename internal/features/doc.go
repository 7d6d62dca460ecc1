// Package features holds the feature gates that kubegrace knows, once: their
// names, their last upstream stage and their default. The public packages
// re-export the gates that concern them.
//
// Upstream removes gates once they are locked for long enough (both sleep gates
// go in v1.37), and a gate that was never added makes
// [featuregate.FeatureGate.Enabled] panic. [Enabled] therefore looks before it
// asks, which is too slow for a hot path: constructors ask once and keep the
// answer.
package features
