package shutdown

import (
	"errors"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
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

// Admit decides whether a pod may start. It refuses every pod while a shutdown is known: from its
// event until its cancellation, and for good once TerminateAll was called. Outside a shutdown it
// refuses a pod whose final status the API server has not acknowledged: that pod, by its UID, was
// ended by a shutdown. A nil pod stands for any pod and is refused only during a shutdown. Call
// Admit when the pod is in the list of [Options.Pods] and has not been started.
//
// A static pod is started again under its UID, and may be the API server itself. Outside a
// shutdown, Admit withdraws its final status and admits the pod once the withdrawal is stored, so
// the caller has to ask again until then.
//
// Admit never blocks and may be called from any goroutine. The number of refusals is stored with
// the shutdown, so that the counter goes on after a restart.
func (m *Manager) Admit(pod *v1.Pod) Admission {
	if m.ShutdownStatus() == nil && !m.admission.unacknowledgedPods.refuses(pod) {
		return Admission{Admit: true}
	}
	m.admission.refused.Add(1)
	m.opts.Metrics.PodsRefused(1)
	return Admission{Reason: NotAdmittedReason, Message: NotAdmittedMessage}
}

// ShutdownStatus returns [ErrNodeShuttingDown] while a shutdown is known: from its event until
// its cancellation, and for good once TerminateAll was called. Otherwise it returns nil. A
// shutdown that a previous agent left unfinished is known from [NewManager] on.
func (m *Manager) ShutdownStatus() error { return m.admission.status() }

// admissionState decides on the admission of pods and counts the refusals.
type admissionState struct {
	shuttingDown       atomic.Bool               // a shutdown is known
	terminating        atomic.Bool               // TerminateAll was called
	refused            atomic.Uint64             // refusals, those of previous agents included
	refusedUntil       atomic.Pointer[time.Time] // until Run has read the state files; nil: it has, or nothing is on record
	unacknowledgedPods unacknowledgedPods
}

func (a *admissionState) status() error {
	until := a.refusedUntil.Load()
	if a.shuttingDown.Load() || a.terminating.Load() || until != nil && time.Now().Before(*until) {
		return ErrNodeShuttingDown
	}
	return nil
}
