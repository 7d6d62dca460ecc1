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

// Header has the facts that all nodes share.
type Header struct {
	// Agent is the program whose shutdown was planned.
	Agent Agent `json:"agent"`
	// Configuration has the shutdown fields of the kubelet's configuration.
	Configuration plan.Config `json:"configuration"`
	// Off says that the configuration switches the graceful node shutdown off, so that the
	// host does not wait for pods.
	Off bool `json:"off,omitempty"`
	// NoLock says that the kubelet takes no inhibitor lock, because LimitSeconds is less than
	// NeededSeconds. The host then does not wait for pods.
	NoLock bool `json:"noLock,omitempty"`
	// LimitSeconds is how long the host waits at most. It is absent if the limit is not known, or if
	// there is none.
	LimitSeconds *float64 `json:"limitSeconds,omitempty"`
	// LimitedBy is the file that keeps LimitSeconds as low as it is, if that is known.
	LimitedBy string `json:"limitedBy,omitempty"`
	// NeededSeconds is how long the agent asks the host to wait: for the pods, and, with kubegrace, for
	// the steps besides the kills, such as publishing the node's state.
	NeededSeconds float64 `json:"neededSeconds"`
}

// Node is the shutdown of one node in the worst case, in which every pod uses all the time that it gets.
type Node struct {
	Name string `json:"name"`
	// PodCount is the number of pods. CutShort is the number of pods that get less than their own grace
	// period, or whose preStop hook takes longer than what they get.
	PodCount int `json:"podCount"`
	CutShort int `json:"cutShort"`
	// LostSeconds is the sum, over the pods, of the part of the grace period that the pod does not get.
	LostSeconds int64 `json:"lostSeconds"`
	// ReleaseSeconds is when the agent releases its lock at the latest. The host may then go down.
	ReleaseSeconds float64 `json:"releaseSeconds"`
	// Buckets are in the order in which they are drained.
	Buckets []Bucket `json:"buckets"`
	// Warnings are about the configuration and the node as a whole.
	Warnings []string `json:"warnings,omitempty"`
}

// Bucket has the pods whose priority is at least Priority and less than the Priority of the next bucket.
type Bucket struct {
	// Priority is the lowest priority in the bucket.
	Priority int32 `json:"priority"`
	// ConfiguredSeconds is the time of the bucket in the configuration. Seconds is the part of it that
	// the host's limit leaves.
	ConfiguredSeconds int64 `json:"configuredSeconds"`
	Seconds           int64 `json:"seconds"`
	// StartSeconds and EndSeconds are the latest times at which the bucket begins and ends.
	StartSeconds float64 `json:"startSeconds"`
	EndSeconds   float64 `json:"endSeconds"`
	Pods         []Pod   `json:"pods"`
}

// Pod is the planned end of one pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Priority is the priority that puts the pod into its bucket.
	Priority int32 `json:"priority"`
	// PrioritySource says where the priority comes from: "spec", "priority class NAME", "manifest
	// without priority: 0", or "guessed: " and the reason. In the plan of a running agent it is "API
	// server", "kubelet", "rule" or "guess".
	PrioritySource string `json:"prioritySource"`
	// OwnSeconds is the terminationGracePeriodSeconds of the pod. GrantedSeconds is the grace
	// period that it gets in the shutdown.
	OwnSeconds     int64 `json:"ownSeconds"`
	GrantedSeconds int64 `json:"grantedSeconds"`
	// LatestStartSeconds is when the pod is told to stop if everything before it uses all its time.
	LatestStartSeconds float64 `json:"latestStartSeconds"`
	// LatestEndSeconds is when all its containers have ended or were killed, at the latest. A container
	// has at least 2 s to stop, even if the grace period is shorter or a hook has used it up.
	LatestEndSeconds float64 `json:"latestEndSeconds"`
	// Outlives says that LatestEndSeconds is after the release of the lock, so that the
	// containers may still run when the host goes down.
	Outlives bool `json:"outlives,omitempty"`
	// CutShort says that GrantedSeconds is less than OwnSeconds, or that a preStop hook takes longer than
	// GrantedSeconds.
	CutShort bool `json:"cutShort,omitempty"`
	// Hooks are the preStop hooks of its containers.
	Hooks []Hook `json:"hooks,omitempty"`
	// Warnings begin with the path of a field of the pod.
	Warnings []string `json:"warnings,omitempty"`

	workload string // the result of workloadOf
}

// Hook is the preStop hook of one container.
type Hook struct {
	Container string `json:"container"`
	// Type is the field of the handler that is set: exec, httpGet, tcpSocket or sleep.
	Type string `json:"type"`
	// Seconds is how long the hook sleeps. It is absent if that is not known.
	Seconds *int64 `json:"seconds,omitempty"`
	// CutShort says that the hook sleeps for longer than the grace period that the pod gets.
	CutShort bool `json:"cutShort,omitempty"`
}

// Summary has the sums of all nodes.
type Summary struct {
	NodeCount   int   `json:"nodeCount"`
	PodCount    int   `json:"podCount"`
	CutShort    int   `json:"cutShort"`
	LostSeconds int64 `json:"lostSeconds"`
	// Losses are the workloads that lose most, followed by the nodes that lose most. Of each kind the
	// worst comes first, and there are at most [MaxWorst].
	Losses []Loss `json:"losses,omitempty"`
	// Proposals are alternatives, each of which makes the plan better. The best comes first.
	Proposals []Proposal `json:"proposals,omitempty"`
	// Outliers are workloads whose grace period is longer than their bucket in the proposed schedule, at most [MaxWorst].
	Outliers []Outlier `json:"outliers,omitempty"`
}

// Outlier is a workload with pods whose grace period is longer than a proposed configuration gives them.
type Outlier struct {
	Name string `json:"name"`
	// PodCount is the number of these pods. AsksSeconds is the longest of their grace periods.
	PodCount    int   `json:"podCount"`
	AsksSeconds int64 `json:"asksSeconds"`
	// Critical says that one of them is critical.
	Critical bool `json:"critical,omitempty"`
}

// Loss is what the pods of one workload, or of one node, lose.
type Loss struct {
	// By is [ByWorkload] or [ByNode].
	By          string `json:"by"`
	Name        string `json:"name"`
	PodCount    int    `json:"podCount"`
	CutShort    int    `json:"cutShort"`
	LostSeconds int64  `json:"lostSeconds"`
}

// Proposal is a way to make the plan better.
type Proposal struct {
	Title string `json:"title"`
	// CutShort and LostSeconds are the sums over all nodes if the proposal is followed.
	CutShort    int   `json:"cutShort"`
	LostSeconds int64 `json:"lostSeconds"`
	// Changes are the steps of the proposal. All of them are needed.
	Changes []Change `json:"changes"`
}

// Change is one change of a proposal.
type Change struct {
	// Where says in words which file or setting to change. Why is half a sentence with the reason why it
	// is that file; it may be "".
	Where string `json:"where"`
	Why   string `json:"why,omitempty"`
	// Lines can be pasted there.
	Lines []string `json:"lines"`
}
