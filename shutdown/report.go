package shutdown

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Report is what became of the pods in one shutdown.
type Report struct {
	Kind      Kind        `json:"kind,omitempty"`
	Origin    string      `json:"origin,omitempty"`
	Started   time.Time   `json:"started"`
	Ended     time.Time   `json:"ended"`
	Cancelled bool        `json:"cancelled,omitempty"`
	Pods      []PodReport `json:"pods,omitempty"` // in the order in which they were killed
}

// PodReport is what became of one pod in a shutdown.
type PodReport struct {
	Namespace      string    `json:"namespace"`
	Name           string    `json:"name"`
	UID            types.UID `json:"uid,omitempty"`
	Priority       int32     `json:"priority"`          // as resolved
	Bucket         int32     `json:"bucket"`            // the priority that names the bucket
	GrantedSeconds int64     `json:"grantedSeconds"`    // as asked of the killer
	Started        time.Time `json:"started"`           // when the killer was called
	Ended          time.Time `json:"ended"`             // zero: it had not ended
	Outcome        string    `json:"outcome,omitempty"` // as the killer names it
	Error          string    `json:"error,omitempty"`
}
