// Package pod stands in for the API server's package of this name. It declares only what the files use that a fork copies
// from here (SERIES.md).
package pod

// podStrategy stands in for the API server's strategy for pods. kubegrace_graceperiod.go adds CheckGracefulDelete.
type podStrategy struct{}
