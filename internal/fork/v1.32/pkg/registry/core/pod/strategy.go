// Package pod declares the API server's strategy for pods.
package pod

// podStrategy is the API server's strategy, without its other methods.
type podStrategy struct{}
