package shutdown

import (
	"errors"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

const (
	// NotAdmittedReason is the reason of a pod that is refused during a node shutdown: the
	// kubelet's NodeShutdownNotAdmittedReason.
	NotAdmittedReason = "NodeShutdown"
	// NotAdmittedMessage is the message of such a pod, the same text as the kubelet's.
	NotAdmittedMessage = "Pod was rejected as the node is shutting down."
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

// Admit decides whether a pod may start. It refuses every pod while a shutdown is known or not yet
// settled: from its event until its cancellation, and for good once TerminateAll was called.
// Outside a shutdown it refuses a pod, by its UID, that an earlier shutdown has signalled, until it
// has ended or its kill was given up, and one whose final status the API server has not acknowledged.
// A nil pod stands for any pod and is refused only during a shutdown. Call Admit when the pod is in
// the list of [Options.Pods] and has not been started.
//
// A static pod is started again under its UID, and may be the API server itself. Outside a
// shutdown, Admit withdraws its final status and admits the pod once the withdrawal is stored, so
// the caller has to ask again until then.
//
// Admit never blocks and may be called from any goroutine. The number of refusals is stored with
// the shutdown, so that the counter goes on after a restart.
func (m *Manager) Admit(pod *v1.Pod) Admission {
	if m.ShutdownStatus() == nil && !m.unended.has(pod) && !m.owes(pod) {
		return Admission{Admit: true}
	}
	m.admission.refused.Add(1)
	m.opts.Metrics.PodsRefused(1)
	return Admission{Reason: NotAdmittedReason, Message: NotAdmittedMessage}
}

// owes reports whether the API server must still be told of the end of a pod. For a static pod it
// withdraws the final status first.
func (m *Manager) owes(pod *v1.Pod) bool {
	if pod == nil || !m.outbox.Owes(pod) {
		return false
	}
	if staticpod.IsOrMirrors(pod) {
		m.outbox.Withdraw(pod)
		return m.outbox.Owes(pod)
	}
	return true
}

// ShutdownStatus returns [ErrNodeShuttingDown] while a shutdown is known: from its event until
// its cancellation, and for good once TerminateAll was called. Otherwise it returns nil. A
// shutdown that a former agent left unfinished is known from [NewManager] on.
func (m *Manager) ShutdownStatus() error {
	state := m.admission.state()
	if m.inbox.phase.Load() == phaseIdle && m.past != nil && !m.past.live() {
		state = none // its time is over, and no loop runs that says so
	}
	if state.refuses() || m.admission.ending.Load() {
		return ErrNodeShuttingDown
	}
	return nil
}

// admissionState holds the state of the node shutdown, from which the admission of pods follows,
// and counts the refusals.
type admissionState struct {
	now     atomic.Int32  // a state
	ending  atomic.Bool   // TerminateAll was called
	refused atomic.Uint64 // refusals, those of former agents included
}

// state returns the state of the node shutdown.
func (a *admissionState) state() state { return state(a.now.Load()) }

// become sets the state of the node shutdown. Only the event loop, and NewManager before it, call
// it.
func (a *admissionState) become(s state) { a.now.Store(int32(s)) }
