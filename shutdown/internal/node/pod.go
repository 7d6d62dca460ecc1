package node

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Key is the UID of a pod, or NAMESPACE/NAME of a pod without a UID.
type Key = types.UID

// Pod is everything known about a pod. It is in the state log once a drain plans to kill it, and in the
// report once it is signalled.
type Pod struct {
	Key       Key    `json:"key"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Priority  int32  `json:"priority"`
	// Object is the pod as last listed. The state log keeps what a kill and the final status need of it, beside the JSON
	// of Pod.
	Object    *v1.Pod `json:"-"`
	Static    bool    `json:"static,omitempty"`    // a static pod: it may start again with the same key
	DaemonSet bool    `json:"daemonSet,omitempty"` // owned by a DaemonSet
	Deleted   bool    `json:"deleted,omitempty"`   // it has a deletion timestamp

	KillPlanned    bool      `json:"meant,omitempty"`    // a drain plans to kill it: the next agent knows this before its first list
	SignalledBy    int       `json:"shutdown,omitempty"` // the number of the shutdown that signalled it; 0: none
	StillRanIn     []int     `json:"joined,omitempty"`   // the numbers of later shutdowns during which it was still running
	Policy         Policy    `json:"policy,omitempty"`   // by the kind of the shutdown when it signalled the pod
	Bucket         int32     `json:"bucket"`             // the priority of its bucket
	GrantedSeconds int64     `json:"grantedSeconds"`     // the grace period of the first kill
	Signalled      time.Time `json:"signalled,omitzero"` // zero: not signalled
	Deadline       time.Time `json:"deadline,omitzero"`  // the end of its grace period; it only moves earlier
	Ended          time.Time `json:"ended,omitzero"`     // zero: not known to have ended
	Outcome        string    `json:"outcome,omitempty"`  // of the newest kill, in the killer's terms
	Error          string    `json:"error,omitempty"`    // of the newest kill
	// Status is the pod's status after its end, as the killer returned it; nil: the status of Object counts.
	Status         *v1.PodStatus `json:"status,omitempty"`
	StatusAccepted bool          `json:"told,omitempty"` // the API server accepted the final status
	// MayShowNotReady says that the API server may show the pod as NotReady, because an agent has sent that. If the pod is
	// not killed after all, Ready must be sent.
	MayShowNotReady bool `json:"marked,omitempty"`

	lastListedIn    int  // the number of the newest list that has the pod
	lastCallAtEnd   int  // the newest call when the pod ended: a list that was requested earlier may still have the pod
	pickedByDrain   int  // the number of the newest drain that picked it
	awaitsNotReady  bool // its kill waits until the API server accepts NotReady
	isKillGivenUp   bool // its kill failed and is not retried
	countedIn       int  // the number of the shutdown in which the metrics have counted it; 0: none
	killsInProgress []kill
	retryKillAt     time.Time // when the kill is retried; zero: never
	message         messageState
	isDirty         bool // it has changed since it was stored
}

// isSignalled reports whether a kill of the pod was started.
func (p *Pod) isSignalled() bool { return !p.Signalled.IsZero() }

// hasEnded reports whether the pod is known to have ended.
func (p *Pod) hasEnded() bool { return !p.Ended.IsZero() }

// isListedAsEnded reports whether the status of the pod, as last listed, says that it has ended: by its phase, or because
// all its containers have terminated. The list of a container runtime has such a pod until its sandbox is stopped.
func (p *Pod) isListedAsEnded() bool {
	if p.Object == nil {
		return false
	}
	status := &p.Object.Status
	containers := status.ContainerStatuses
	mayRun := func(c v1.ContainerStatus) bool { return c.State.Terminated == nil }
	areAllTerminated := len(containers) > 0 && !slices.ContainsFunc(containers, mayRun)
	return areAllTerminated || status.Phase == v1.PodSucceeded || status.Phase == v1.PodFailed
}

// isTerminating reports whether the pod was signalled and its end is still awaited. Nobody waits for the end of a pod whose kill
// was given up.
func (p *Pod) isTerminating() bool { return p.isSignalled() && !p.hasEnded() && !p.isKillGivenUp }

// isInReportOf reports whether the report of s includes the pod: s has signalled the pod, or it was still terminating when s
// began. A nil s has no report.
func (p *Pod) isInReportOf(s *Shutdown) bool {
	return s != nil && p.isSignalled() && (p.SignalledBy == s.Number || slices.Contains(p.StillRanIn, s.Number))
}

// newestShutdown returns the number of the newest shutdown whose report includes the pod; 0: none.
func (p *Pod) newestShutdown() int {
	if len(p.StillRanIn) > 0 {
		return p.StillRanIn[len(p.StillRanIn)-1]
	}
	return p.SignalledBy
}

// compare orders pods as they are killed: by priority, and then by name, so that the order is always the same.
func (p *Pod) compare(q *Pod) int {
	return cmp.Or(cmp.Compare(p.Priority, q.Priority), cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(p.Name, q.Name), cmp.Compare(p.Key, q.Key))
}

// isNeededByNextAgent reports whether the state log must have the pod: it was signalled, the API server may show it as NotReady,
// or a drain plans to kill it.
func (p *Pod) isNeededByNextAgent() bool {
	return p.isSignalled() || p.MayShowNotReady || p.KillPlanned
}

// matching returns the pods that match.
func matching(pods []*Pod, match func(*Pod) bool) (found []*Pod) {
	for _, p := range pods {
		if match(p) {
			found = append(found, p)
		}
	}
	return found
}

// pods is the set of known pods, in the order in which they became known.
type pods struct {
	byKey map[Key]*Pod
	all   []*Pod
}

// put adds a pod, or replaces the one with the same key.
func (s *pods) put(p *Pod) {
	if before := s.byKey[p.Key]; before != nil {
		s.all[slices.Index(s.all, before)] = p
	} else {
		s.all = append(s.all, p)
	}
	s.byKey[p.Key] = p
}

// drop removes the pods that match.
func (s *pods) drop(match func(*Pod) bool) {
	s.all = slices.DeleteFunc(s.all, func(p *Pod) bool {
		if !match(p) {
			return false
		}
		delete(s.byKey, p.Key)
		return true
	})
}
