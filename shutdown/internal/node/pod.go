package node

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Key is the UID of a pod, or NAMESPACE/NAME of one without.
type Key = types.UID

// Pod is all that is known of one pod. It is an entity of the state log from the moment at which a
// shutdown means to kill it, and a line of the report once it was signalled.
type Pod struct {
	Key       Key    `json:"key"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Priority  int32  `json:"priority"`
	// Object is the pod as it was listed last. The state log keeps the part of it that a kill and the
	// final status need.
	Object    *v1.Pod `json:"object,omitempty"`
	Static    bool    `json:"static,omitempty"`    // it is started again under its key
	DaemonSet bool    `json:"daemonSet,omitempty"` // a DaemonSet owns it
	Deleted   bool    `json:"deleted,omitempty"`   // it has a deletion timestamp

	Meant     bool      `json:"meant,omitempty"`    // a drain means to kill it
	Shutdown  int       `json:"shutdown,omitempty"` // the number of the one that has signalled it; 0: none
	Joined    []int     `json:"joined,omitempty"`   // of later ones in which it has not ended yet
	Policy    Policy    `json:"policy,omitempty"`   // of the shutdown that has signalled it
	Bucket    int32     `json:"bucket"`             // the priority that names its bucket
	Granted   int64     `json:"grantedSeconds"`     // the first grace period
	Signalled time.Time `json:"signalled,omitzero"` // zero: it was not
	Deadline  time.Time `json:"deadline,omitzero"`  // the end of its grace period, which only moves earlier
	Ended     time.Time `json:"ended,omitzero"`     // zero: it is not known to have ended
	Outcome   string    `json:"outcome,omitempty"`  // in the killer's words
	Error     string    `json:"error,omitempty"`    // of the last call of the killer
	// Status is the status after the end, from the killer; nil: that of Object.
	Status *v1.PodStatus `json:"status,omitempty"`
	Told   bool          `json:"told,omitempty"`   // the API server has accepted the final status
	Marked bool          `json:"marked,omitempty"` // the API server may have it as not ready

	listed    int       // the number of the newest list that has it
	endedAt   int       // the last call before it has ended
	picked    int       // the number of the drain that has picked it last
	isWaiting bool      // for its mark, before it is signalled
	isGivenUp bool      // no call of the killer follows
	calls     []kill    // of the killer, which are under way
	retryAt   time.Time // when the killer is called again; zero: not
	telling   telling
	isDirty   bool // it has changed since it was stored
}

// isSignalled reports whether the killer was called.
func (p *Pod) isSignalled() bool { return !p.Signalled.IsZero() }

// runs reports whether the pod was signalled, and its end is waited for.
func (p *Pod) runs() bool { return p.isSignalled() && p.Ended.IsZero() && !p.isGivenUp }

// isOf reports whether a shutdown has killed the pod, first or further.
func (p *Pod) isOf(s *Shutdown) bool {
	return s != nil && p.isSignalled() && (p.Shutdown == s.Number || slices.Contains(p.Joined, s.Number))
}

// compare orders pods as they are killed.
func (p *Pod) compare(q *Pod) int {
	return cmp.Or(cmp.Compare(p.Priority, q.Priority), cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(p.Name, q.Name), cmp.Compare(p.Key, q.Key))
}

// pods are the pods that are known, in the order in which they became known.
type pods struct {
	byKey map[Key]*Pod
	all   []*Pod
}

// put adds a pod, or replaces the one with its key.
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
