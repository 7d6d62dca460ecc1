// Package pod declares what the copied file uses of the API server's package: podStrategy, without its other methods.
package pod

// podStrategy stands in for the API server's strategy for pods. kubegrace_graceperiod.go adds CheckGracefulDelete.
type podStrategy struct{}
