// Package pod declares the API server's strategy for pods.
package pod

type podStrategy struct{}
