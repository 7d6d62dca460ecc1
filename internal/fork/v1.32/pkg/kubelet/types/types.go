// Package types declares what the copied files use of the kubelet's types.
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
