package shutdown

import (
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/podkey"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

const (
	// notAdmittedReason is the kubelet's NodeShutdownNotAdmittedReason.
	notAdmittedReason = "NodeShutdown"
	// notAdmittedMessage is the kubelet's nodeShutdownNotAdmittedMessage.
	notAdmittedMessage = "Pod was rejected as the node is shutting down."
)

// ErrNodeShuttingDown is returned by [Manager.ShutdownStatus] during a shutdown. The kubelet puts its
// text into the node's Ready condition.
var ErrNodeShuttingDown = errors.New("node is shutting down")

// Admission is the result of [Manager.Admit]. Its fields are those of the kubelet's
// lifecycle.PodAdmitResult, so that the types convert to each other.
type Admission struct {
	Admit           bool   // the pod may start
	Reason, Message string // why it may not start; both are empty if it may
}

// admissionSnapshot says which pods are refused. Admit and ShutdownStatus read it without a mutex, so that they never
// block.
type admissionSnapshot struct {
	refuses bool               // every pod is refused
	until   time.Time          // when refuses no longer applies; zero: never, until Run replaces the snapshot
	pods    map[types.UID]bool // the pods that are refused even if refuses is false; true: a static pod
}

// refusesAll reports whether every pod is refused now: refuses is set, and until has not come.
func (s *admissionSnapshot) refusesAll() bool {
	return s.refuses && (s.until.IsZero() || time.Now().Before(s.until))
}

// refusedPods returns the pods that are refused even outside a shutdown, by key: they are still terminating, or their final
// status is pending. isStatic[key] says whether the pod is a static one. A static pod restarts with the same key, so Admit
// refuses it only once.
func refusedPods(n *node.Node) (isStatic map[types.UID]bool) {
	isStatic = map[types.UID]bool{}
	for _, p := range n.Refused() {
		isStatic[p.Key] = p.Static
	}
	return isStatic
}

// updateAdmission replaces the snapshot that Admit reads. It is called after each step of the core (package node), and after
// each write to the log. The mutex is held.
func (s *shell) updateAdmission() {
	switch {
	case s.node.Refuses():
		s.admission.Store(&admissionSnapshot{refuses: true})
	case s.node.State() == node.StateAwaitingLog:
		// The log is being read, and only it says which pods to refuse: the snapshot stays.
	default:
		refused := refusedPods(s.node)
		if s.isWriting() { // the log may not have the acceptance of a final status yet
			s.refuseAcceptedStaticPods(refused)
		}
		s.admission.Store(&admissionSnapshot{pods: refused})
	}
}

// refuseAcceptedStaticPods adds to refused the static pods whose final statuses the API server has accepted. It is called while
// the log is being written: such a pod should run again only when the log has the acceptance. Otherwise, if the agent died, the
// next agent would send the old final status for the running pod. The mutex is held.
func (s *shell) refuseAcceptedStaticPods(refused map[types.UID]bool) {
	for _, p := range s.node.PodsOf(s.node.Shutdown()) {
		if p.Static && p.StatusAccepted {
			refused[p.Key] = p.Static
		}
	}
}

// admits decides for [Manager.Admit] whether a pod may start; nil: any pod.
func (s *shell) admits(pod *v1.Pod) bool {
	snapshot := s.admission.Load()
	if snapshot.refusesAll() {
		return false
	}
	s.logMissingRun()
	if pod == nil {
		return true
	}
	key := podkey.Of(pod)
	isStatic, isRefused := snapshot.pods[key]
	if isStatic {
		// Unless a kill of the pod is in progress, the core drops its pending final status, and a later Admit admits the pod.
		s.step(node.StaticPodStarts{Key: key})
	}
	return !isRefused
}
