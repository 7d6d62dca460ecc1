package nodeplan

import "github.com/kubegrace/kubegrace/shutdown/plan"

const (
	// APIVersion is the version of [Document].
	APIVersion = "node.kubegrace.dev/v1"
	// Kind is the kind of [Document].
	Kind = "ShutdownPlan"
)

// Document is the plan for the nodes of a cluster.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Header
	// Nodes are sorted by name.
	Nodes   []Node  `json:"nodes"`
	Summary Summary `json:"summary"`
}

// Header has what is the same for all nodes.
type Header struct {
	// Agent is the agent that was planned.
	Agent Agent `json:"agent"`
	// Configuration has the shutdown fields of the kubelet's configuration.
	Configuration plan.Config `json:"configuration"`
	// Off says that the configuration switches the graceful node shutdown off, so that the
	// host does not wait for pods.
	Off bool `json:"off,omitempty"`
	// NoLock says that the agent takes no lock, because LimitSeconds is less than NeededSeconds, so
	// that the host does not wait for pods.
	NoLock bool `json:"noLock,omitempty"`
	// LimitSeconds is how long the host waits at most; absent: not known, or without a limit.
	LimitSeconds *float64 `json:"limitSeconds,omitempty"`
	// LimitedBy is the file that keeps LimitSeconds as low as it is, if that is known.
	LimitedBy string `json:"limitedBy,omitempty"`
	// NeededSeconds is how long the host is asked to wait: for the pods, and for what kubegrace
	// does beside the kills.
	NeededSeconds float64 `json:"neededSeconds"`
}

// Node is the shutdown of one node in which every pod takes all the time that it gets.
type Node struct {
	Name string `json:"name"`
	// PodCount is the number of pods. CutShort is the number of pods that get less than they
	// ask for, or whose preStop hook takes longer than what they get.
	PodCount int `json:"podCount"`
	CutShort int `json:"cutShort"`
	// LostSeconds is the sum of what the pods ask for and do not get.
	LostSeconds int64 `json:"lostSeconds"`
	// ReleaseSeconds is when the host is released at the latest, so that it may go down.
	ReleaseSeconds float64 `json:"releaseSeconds"`
	// Buckets are in the order in which they are drained.
	Buckets []Bucket `json:"buckets"`
	// Warnings are about the configuration and the node as a whole.
	Warnings []string `json:"warnings,omitempty"`
}

// Bucket has the pods from one priority up to that of the next bucket.
type Bucket struct {
	// Priority is the lowest priority in the bucket.
	Priority int32 `json:"priority"`
	// ConfiguredSeconds is the time of the bucket in the configuration. Seconds is what the
	// limit of the host leaves of it.
	ConfiguredSeconds int64 `json:"configuredSeconds"`
	Seconds           int64 `json:"seconds"`
	// StartSeconds and EndSeconds are when the bucket begins and ends at the latest.
	StartSeconds float64 `json:"startSeconds"`
	EndSeconds   float64 `json:"endSeconds"`
	Pods         []Pod   `json:"pods"`
}

// Pod is the planned end of one pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Priority is the priority by which the pod is in its bucket.
	Priority int32 `json:"priority"`
	// PrioritySource says where the priority comes from: "spec", "priority class NAME", "manifest
	// without priority: 0", or "guessed: " and the reason; for an agent "API server", "kubelet", "rule" or "guess".
	PrioritySource string `json:"prioritySource"`
	// OwnSeconds is the terminationGracePeriodSeconds of the pod. GrantedSeconds is the grace
	// period that it gets in the shutdown.
	OwnSeconds     int64 `json:"ownSeconds"`
	GrantedSeconds int64 `json:"grantedSeconds"`
	// LatestStartSeconds is when it is told to stop if everything before it takes all its time.
	LatestStartSeconds float64 `json:"latestStartSeconds"`
	// LatestEndSeconds is when its containers have ended or were killed at the latest. They have
	// at least 2 s to stop, even if the grace period is shorter or a hook has used it up.
	LatestEndSeconds float64 `json:"latestEndSeconds"`
	// Outlives says that LatestEndSeconds is after the release of the host, so that the
	// containers may still run when the host goes down.
	Outlives bool `json:"outlives,omitempty"`
	// CutShort says that the pod gets less than it asks for, or that a hook does not fit.
	CutShort bool `json:"cutShort,omitempty"`
	// Hooks are the preStop hooks of its containers.
	Hooks []Hook `json:"hooks,omitempty"`
	// Warnings begin with the path of a field of the pod.
	Warnings []string `json:"warnings,omitempty"`

	workload string
}

// Hook is a preStop hook.
type Hook struct {
	Container string `json:"container"`
	// Type is the field of the handler: exec, httpGet, tcpSocket or sleep.
	Type string `json:"type"`
	// Seconds is how long the hook sleeps; absent: not known.
	Seconds *int64 `json:"seconds,omitempty"`
	// CutShort says that the hook takes longer than what the pod gets.
	CutShort bool `json:"cutShort,omitempty"`
}

// Summary has the sums of all nodes.
type Summary struct {
	NodeCount   int   `json:"nodeCount"`
	PodCount    int   `json:"podCount"`
	CutShort    int   `json:"cutShort"`
	LostSeconds int64 `json:"lostSeconds"`
	// Losses are the workloads and then the nodes that lose most, the worst first, at most [MaxWorst] of each.
	Losses []Loss `json:"losses,omitempty"`
	// Proposals are changes with which the plan is better, one or the other, the best first.
	Proposals []Proposal `json:"proposals,omitempty"`
	// Outliers are the workloads that no proposed configuration covers, at most [MaxWorst].
	Outliers []Outlier `json:"outliers,omitempty"`
}

// Outlier is a workload with pods that ask for more than a proposed configuration gives them.
type Outlier struct {
	Name string `json:"name"`
	// PodCount is the number of these pods. AsksSeconds is what one of them asks for at most.
	PodCount    int   `json:"podCount"`
	AsksSeconds int64 `json:"asksSeconds"`
	// Critical says that one of them is critical.
	Critical bool `json:"critical,omitempty"`
}

// Loss is what a group of pods loses.
type Loss struct {
	// By is [ByWorkload] or [ByNode].
	By          string `json:"by"`
	Name        string `json:"name"`
	PodCount    int    `json:"podCount"`
	CutShort    int    `json:"cutShort"`
	LostSeconds int64  `json:"lostSeconds"`
}

// Proposal is a change with which the plan is better.
type Proposal struct {
	Title string `json:"title"`
	// CutShort and LostSeconds are those of all pods after it.
	CutShort    int   `json:"cutShort"`
	LostSeconds int64 `json:"lostSeconds"`
	// Changes belong together.
	Changes []Change `json:"changes"`
}

// Change is one change of a proposal.
type Change struct {
	// Where names a file, a shell or an object. Why is half a sentence that
	// says why there; it may be "".
	Where string `json:"where"`
	Why   string `json:"why,omitempty"`
	// Lines can be pasted there.
	Lines []string `json:"lines"`
}
