package api

import "time"

// Version is the apiVersion of all that is said.
const Version = "nodeagent.kubegrace.dev/v1"

// Meta begins each answer.
type Meta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// Error says why a request has failed.
type Error struct {
	Meta
	Message string `json:"message"`
}

// Plan is what a shutdown would do if each pod took all of its time.
type Plan struct {
	Meta
	// AskedSeconds is what the host is asked to wait for, ReleaseSeconds when it is let
	// go at the latest, from the announcement on.
	AskedSeconds   float64  `json:"askedSeconds"`
	ReleaseSeconds float64  `json:"releaseSeconds"`
	Buckets        []Bucket `json:"buckets"`
	Warnings       []string `json:"warnings,omitempty"`
}

// Bucket is what is stopped at the same time, in the order of their stop.
type Bucket struct {
	Priority          int32     `json:"priority"`          // the lowest of its pods'
	ConfiguredSeconds int64     `json:"configuredSeconds"` // its time by the configuration
	Seconds           int64     `json:"seconds"`           // what the host's limit leaves of it
	StartSeconds      float64   `json:"startSeconds"`      // from the announcement, at the latest
	EndSeconds        float64   `json:"endSeconds"`
	Pods              []PodPlan `json:"pods"`
}

// PodPlan is one pod of a plan.
type PodPlan struct {
	Namespace      string `json:"namespace"`
	Name           string `json:"name"`
	Priority       int32  `json:"priority"`
	WantedSeconds  int64  `json:"wantedSeconds"` // its terminationGracePeriodSeconds
	GrantedSeconds int64  `json:"grantedSeconds"`
	CutShort       bool   `json:"cutShort,omitempty"`
	// StartSeconds is when it is told to stop at the latest, EndSeconds when it has ended
	// if it takes all of its time, from the announcement on.
	StartSeconds float64 `json:"startSeconds"`
	EndSeconds   float64 `json:"endSeconds"`
}

// PodList is all pods of the agent, in the order in which they stop.
type PodList struct {
	Meta
	ShuttingDown bool  `json:"shuttingDown"`
	Items        []Pod `json:"items"`
}

// Pod is what is known of a pod now.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Priority  int32  `json:"priority"`
	Bucket    int32  `json:"bucket"`
	// State is Starting, Running, Waiting (to be started again), Finished, NotStarted,
	// Stopped (by hand), Ending or Gone.
	State string `json:"state"`
	// Doing says it in words.
	Doing string `json:"doing"`
	// Problem is why it did not start, or was not stopped.
	Problem    string      `json:"problem,omitempty"`
	Restarts   int         `json:"restarts,omitempty"`
	Granted    int64       `json:"grantedSeconds,omitempty"`
	Deadline   time.Time   `json:"deadline,omitzero"`
	Containers []Container `json:"containers,omitempty"`
}

// Container is how the stop of a container goes.
type Container struct {
	Name    string `json:"name"`
	Phase   string `json:"phase"`
	Outcome string `json:"outcome,omitempty"`
	Hook    string `json:"hook,omitempty"` // how its preStop hook ended
}

// Report is what became of the pods in one shutdown.
type Report struct {
	Meta
	// Shutdown is poweroff, reboot, halt, kexec or soft-reboot; left out where nobody said.
	Shutdown  string    `json:"shutdown,omitempty"`
	Origin    string    `json:"origin,omitempty"` // who announced it
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended,omitzero"` // left out: it has not come so far
	Cancelled bool      `json:"cancelled,omitempty"`
	// UnderWay says that the agent is at it.
	UnderWay bool        `json:"underWay,omitempty"`
	Pods     []PodReport `json:"pods"`
	Errors   []string    `json:"errors,omitempty"` // beside the pods' own
}

// PodReport is what became of one pod.
type PodReport struct {
	Namespace      string    `json:"namespace"`
	Name           string    `json:"name"`
	UID            string    `json:"uid,omitempty"`
	Priority       int32     `json:"priority"`
	Bucket         int32     `json:"bucket"`
	GrantedSeconds int64     `json:"grantedSeconds"`
	Started        time.Time `json:"started,omitzero"` // when it was told to stop
	Ended          time.Time `json:"ended,omitzero"`   // left out: it is not known to have ended
	Outcome        string    `json:"outcome,omitempty"`
	Error          string    `json:"error,omitempty"`
	// Unacknowledged says that the API server does not know of its end.
	Unacknowledged bool `json:"unacknowledged,omitempty"`
}
