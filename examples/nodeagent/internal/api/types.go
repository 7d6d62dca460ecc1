package api

import (
	"time"

	"github.com/kubegrace/kubegrace/shutdown"
)

// Version is the apiVersion of all answers.
const Version = "nodeagent.kubegrace.dev/v2"

// Meta is the first part of each answer.
type Meta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// Error is the answer to a request that has failed.
type Error struct {
	Meta
	Message string `json:"message"`
}

// Plan says what a shutdown would do if each pod took all of its time.
type Plan struct {
	Meta
	// AskedSeconds is how long the host is asked to wait. ReleaseSeconds is when the
	// agent lets it go at the latest. Both count from the announcement.
	AskedSeconds   float64  `json:"askedSeconds"`
	ReleaseSeconds float64  `json:"releaseSeconds"`
	Buckets        []Bucket `json:"buckets"`
	Warnings       []string `json:"warnings,omitempty"`
}

// Bucket is a group of pods that are stopped at the same time. Buckets are in the order
// in which they are stopped.
type Bucket struct {
	Priority          int32     `json:"priority"`          // the lowest priority of its pods
	ConfiguredSeconds int64     `json:"configuredSeconds"` // its time in the configuration
	Seconds           int64     `json:"seconds"`           // what is left of it under the host's limit
	StartSeconds      float64   `json:"startSeconds"`      // at the latest, from the announcement on, as EndSeconds
	EndSeconds        float64   `json:"endSeconds"`
	Pods              []PodPlan `json:"pods"`
}

// PodPlan is the plan for one pod.
type PodPlan struct {
	Namespace      string `json:"namespace"`
	Name           string `json:"name"`
	Priority       int32  `json:"priority"`
	WantedSeconds  int64  `json:"wantedSeconds"` // its terminationGracePeriodSeconds
	GrantedSeconds int64  `json:"grantedSeconds"`
	CutShort       bool   `json:"cutShort,omitempty"`
	// StartSeconds is when the pod is told to stop at the latest. EndSeconds is when it
	// has ended if it takes all of its time. Both count from the announcement.
	StartSeconds float64 `json:"startSeconds"`
	EndSeconds   float64 `json:"endSeconds"`
}

// PodList lists all pods of the agent, in the order in which they are stopped.
type PodList struct {
	Meta
	ShuttingDown bool  `json:"shuttingDown"`
	Items        []Pod `json:"items"`
}

// Pod is the present state of one pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Priority  int32  `json:"priority"`
	Bucket    int32  `json:"bucket"`
	// State is Running, Ending or Gone.
	State string `json:"state"`
	// Doing describes the state in words.
	Doing string `json:"doing"`
	// Problem is why the pod was not stopped.
	Problem    string      `json:"problem,omitempty"`
	Granted    int64       `json:"grantedSeconds,omitempty"`
	Deadline   time.Time   `json:"deadline,omitzero"`
	Containers []Container `json:"containers,omitempty"`
}

// Container is the progress of the stop of one container.
type Container struct {
	Name    string `json:"name"`
	Phase   string `json:"phase"`
	Outcome string `json:"outcome,omitempty"`
	Hook    string `json:"hook,omitempty"` // how its preStop hook ended
}

// Report is the result of one shutdown.
type Report struct {
	Meta
	// UnderWay is true while the agent carries out this shutdown.
	UnderWay bool            `json:"underWay,omitempty"`
	Shutdown shutdown.Report `json:"shutdown"`
}
