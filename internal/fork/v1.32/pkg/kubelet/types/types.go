// Package types declares what the copied files use of the kubelet's types.
package types

import "net/http"

// HTTPDoer sends a request.
type HTTPDoer interface {
	Do(req *http.Request) (*http.Response, error)
}

// SyncPodType says what an update of a pod is.
type SyncPodType int

const (
	SyncPodSync SyncPodType = iota
	SyncPodUpdate
	SyncPodCreate
	SyncPodKill
)
