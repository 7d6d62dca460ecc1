package api

import "github.com/kubegrace/kubegrace/shutdown"

// Version is the apiVersion of all answers.
const Version = "node.kubegrace.dev/v1"

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

// Status says what the agent does, and what its pods would lose if the machine shut down now.
type Status struct {
	Meta
	// Held says that the agent holds back the shutdown of the machine, Drained that kubegrace-node drain has
	// stopped its pods, and ShuttingDown that a shutdown or a drain has begun.
	Held         bool `json:"held"`
	Drained      bool `json:"drained"`
	ShuttingDown bool `json:"shuttingDown"`
	// AskedSeconds is how long the host is asked to wait.
	AskedSeconds float64 `json:"askedSeconds"`
	// Missing has a line for each thing that the agent works without.
	Missing []string `json:"missing,omitempty"`
	// PodCount is the number of pods, CutShort of those that would get less time than they ask for, and
	// LostSeconds the sum of what these would lose.
	PodCount    int   `json:"podCount"`
	CutShort    int   `json:"cutShort"`
	LostSeconds int64 `json:"lostSeconds"`
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
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Priority  int32  `json:"priority"`
	// PrioritySource says who has told the priority: "API server", "kubelet", "rule" or "guess".
	PrioritySource string `json:"prioritySource,omitempty"`
	WantedSeconds  int64  `json:"wantedSeconds"` // its terminationGracePeriodSeconds
	GrantedSeconds int64  `json:"grantedSeconds"`
	CutShort       bool   `json:"cutShort,omitempty"`
	// StartSeconds is when the pod is told to stop at the latest. EndSeconds is when it
	// has ended if it takes all of its time. Both count from the announcement.
	StartSeconds float64 `json:"startSeconds"`
	EndSeconds   float64 `json:"endSeconds"`
}

// Report is the result of one shutdown.
type Report struct {
	Meta
	// UnderWay is true while the agent carries out this shutdown.
	UnderWay bool            `json:"underWay,omitempty"`
	Shutdown shutdown.Report `json:"shutdown"`
}
