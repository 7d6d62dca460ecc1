// Package types stands in for the kubelet's package of this name. It declares only what the files use that a fork copies
// from here (SERIES.md).
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
