// Package types stands in for the kubelet's package of this name. A fork copies only the files with
// kubegrace in their path (SERIES.md). The other files declare just what those need.
package types

import "net/http"

// HTTPDoer sends a request.
type HTTPDoer interface {
	Do(req *http.Request) (*http.Response, error)
}

// SyncPodType is the kind of a pod update.
type SyncPodType int

const (
	SyncPodSync SyncPodType = iota
	SyncPodUpdate
	SyncPodCreate
	SyncPodKill
)
