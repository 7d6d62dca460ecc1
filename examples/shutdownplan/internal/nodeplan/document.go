package nodeplan

import "github.com/kubegrace/kubegrace/shutdown/plan"

const (
	// APIVersion is the version of the document.
	APIVersion = "shutdownplan/v1"
	// Kind is its kind.
	Kind = "ShutdownPlan"
)

// Document is a plan for the nodes of a cluster.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Header
	// Nodes are in the order of their names.
	Nodes   []Node  `json:"nodes"`
	Summary Summary `json:"summary"`
}

// Header is what all nodes have in common.
type Header struct {
	// Configuration is that of the kubelet, as far as it counts.
	Configuration plan.Config `json:"configuration"`
	// Off says that this configuration switches the graceful node shutdown off: no
	// time is asked of the host.
	Off bool `json:"off,omitempty"`
	// LimitSeconds is how long the host waits at most; absent: not known, or for ever.
	LimitSeconds *float64 `json:"limitSeconds,omitempty"`
	// NeededSeconds is what the host is asked for: the time of the pods, and of what
	// is done beside.
	NeededSeconds float64 `json:"neededSeconds"`
}

// Node is the shutdown of one node, if every pod takes all the time it has.
type Node struct {
	Name string `json:"name"`
	// PodCount counts its pods, CutShort those that get less than they ask for, or
	// whose preStop hook is longer than what they get.
	PodCount int `json:"podCount"`
	CutShort int `json:"cutShort"`
	// LostSeconds is what its pods ask for and do not get, all together.
	LostSeconds int64 `json:"lostSeconds"`
	// ReleaseSeconds is when the host is let go at the latest.
	ReleaseSeconds float64 `json:"releaseSeconds"`
	// Buckets are in the order in which they are drained.
	Buckets []Bucket `json:"buckets"`
	// Warnings are sentences.
	Warnings []string `json:"warnings,omitempty"`
}

// Bucket is the time of the pods from one priority up to the next.
type Bucket struct {
	// Priority is the lowest of its pods' and its name.
	Priority int32 `json:"priority"`
	// ConfiguredSeconds is the bucket's time as configured, Seconds what the limit of
	// the host leaves of it.
	ConfiguredSeconds int64 `json:"configuredSeconds"`
	Seconds           int64 `json:"seconds"`
	// StartSeconds and EndSeconds are when it begins and is over, at the latest.
	StartSeconds float64 `json:"startSeconds"`
	EndSeconds   float64 `json:"endSeconds"`
	Pods         []Pod   `json:"pods"`
}

// Pod is what becomes of one pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Priority is the one that decides on its bucket.
	Priority int32 `json:"priority"`
	// OwnSeconds is its terminationGracePeriodSeconds, GrantedSeconds what the
	// shutdown gives it.
	OwnSeconds     int64 `json:"ownSeconds"`
	GrantedSeconds int64 `json:"grantedSeconds"`
	// EarliestStartSeconds is when it is told to stop if whatever comes before ends at
	// once, LatestStartSeconds if all of it takes its time.
	EarliestStartSeconds float64 `json:"earliestStartSeconds"`
	LatestStartSeconds   float64 `json:"latestStartSeconds"`
	// LatestEndSeconds is when its containers have ended or were killed. They have 2 s
	// to stop, whatever the grace period is and however much of it a hook has used.
	LatestEndSeconds float64 `json:"latestEndSeconds"`
	// Outlives says that this is after the host was let go: its containers may still
	// run when the host goes down.
	Outlives bool `json:"outlives,omitempty"`
	// CutShort says that it gets less than it asks for, or that a hook does.
	CutShort bool `json:"cutShort,omitempty"`
	// Why says in a sentence why it gets less than it asks for.
	Why string `json:"why,omitempty"`
	// Hooks are its preStop hooks.
	Hooks []Hook `json:"hooks,omitempty"`
	// Warnings are sentences, each of which begins with a field.
	Warnings []string `json:"warnings,omitempty"`
}

// Hook is a preStop hook.
type Hook struct {
	Container string `json:"container"`
	// Type is the field of the handler: exec, httpGet, tcpSocket or sleep.
	Type string `json:"type"`
	// Seconds is how long it sleeps; absent: not known.
	Seconds *int64 `json:"seconds,omitempty"`
	// CutShort says that this is longer than what the pod gets.
	CutShort bool `json:"cutShort,omitempty"`
}

// Summary adds up the nodes.
type Summary struct {
	NodeCount   int   `json:"nodeCount"`
	PodCount    int   `json:"podCount"`
	CutShort    int   `json:"cutShort"`
	LostSeconds int64 `json:"lostSeconds"`
	// WorstNodes are those that lose most, at most [WorstNodes], the worst first.
	WorstNodes []NodeLoss `json:"worstNodes,omitempty"`
	// Changes would have no pod cut short; the first ones go together.
	Changes []Change `json:"changes,omitempty"`
}

// NodeLoss is what a node loses.
type NodeLoss struct {
	Name        string `json:"name"`
	PodCount    int    `json:"podCount"`
	CutShort    int    `json:"cutShort"`
	LostSeconds int64  `json:"lostSeconds"`
}

// Change is something to change.
type Change struct {
	// Where is a file, a host or an object, Why a sentence.
	Where string `json:"where"`
	Why   string `json:"why"`
	// Lines can be pasted there.
	Lines []string `json:"lines"`
}
