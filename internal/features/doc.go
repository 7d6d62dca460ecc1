// Package features has the names, stages and defaults of kubegrace's feature gates. Public packages
// re-export those that they use.
//
// Kubernetes removes the gates of stable features (both sleep gates in v1.37), and its Enabled panics for a
// feature that was never added. [Enabled] therefore checks first whether the gate has the feature. That is
// slow: call it in a constructor.
package features
