package shutdown

import (
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

const (
	// notAdmittedReason is the reason of a pod that is refused during a node shutdown: the
	// kubelet's NodeShutdownNotAdmittedReason.
	notAdmittedReason = "NodeShutdown"
	// notAdmittedMessage is the message of such a pod, the same text as the kubelet's.
	notAdmittedMessage = "Pod was rejected as the node is shutting down."
)

// ErrNodeShuttingDown is what [Manager.ShutdownStatus] returns during a shutdown. The kubelet
// puts its text into the node's Ready condition.
var ErrNodeShuttingDown = errors.New("node is shutting down")

// Admission is the answer of [Manager.Admit]. Its fields are those of the kubelet's
// lifecycle.PodAdmitResult, so that one type converts to the other.
type Admission struct {
	Admit           bool   // the pod may start
	Reason, Message string // why not; both are empty if it may
}

// admission is what Admit and ShutdownStatus read. It is a snapshot: the shell replaces it after each
// step.
type admission struct {
	now     atomic.Pointer[admissionSnapshot]
	refused atomic.Uint64 // how many pods
}

// admissionSnapshot says who is admitted.
type admissionSnapshot struct {
	refuses bool               // every pod
	until   time.Time          // when that ends by itself, because Run has not begun; zero: it does not
	pods    map[types.UID]bool // who is refused in any case; true: a static pod
}

// refusesAll reports whether no pod is admitted.
func (s *admissionSnapshot) refusesAll() bool {
	return s.refuses && (s.until.IsZero() || time.Now().Before(s.until))
}

// snapshotOf returns who is admitted by a node. Where every pod is refused no single one is asked for, and
// a drain has many steps.
func snapshotOf(n *node.Node) *admissionSnapshot {
	if n.Refuses() {
		return &admissionSnapshot{refuses: true}
	}
	return &admissionSnapshot{pods: refusedPods(n)}
}

// refusedPods returns who is refused even if other pods are not.
func refusedPods(n *node.Node) map[types.UID]bool {
	pods := map[types.UID]bool{}
	for _, p := range n.Refused() {
		pods[p.Key] = p.Static
	}
	return pods
}
