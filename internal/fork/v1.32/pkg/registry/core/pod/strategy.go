// Package pod stands in for the API server's package of this name. A fork copies only the files with
// kubegrace in their path (SERIES.md). The other files declare just what those need.
package pod

// podStrategy stands in for the API server's strategy for pods. kubegrace_graceperiod.go adds CheckGracefulDelete.
type podStrategy struct{}
