// Package features has the feature gates of kubegrace: their names, stages and defaults.
// The public packages re-export the gates that they use.
//
// A Kubernetes gate panics when its Enabled is called for a feature that was never added,
// and Kubernetes removes features that are always on (both sleep gates in v1.37).
// [Enabled] therefore looks into the gate first, which is too slow for a hot path: call it
// in a constructor and keep the result.
package features
