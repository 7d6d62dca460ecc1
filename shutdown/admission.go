package shutdown

import (
	"errors"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
)

const (
	// NotAdmittedReason is the reason of a pod that is refused while the node
	// shuts down: the kubelet's NodeShutdownNotAdmittedReason.
	NotAdmittedReason = "NodeShutdown"
	// NotAdmittedMessage is the kubelet's message for the same.
	NotAdmittedMessage = "Pod was rejected as the node is shutting down."
)

// ErrNodeShuttingDown is what [Manager.ShutdownStatus] gives during a shutdown;
// the kubelet folds its text into the node's Ready condition.
var ErrNodeShuttingDown = errors.New("node is shutting down")

// Admission says whether a pod may start. Its fields are those of the kubelet's
// lifecycle.PodAdmitResult, so that one converts to the other.
type Admission struct {
	Admit           bool   // the pod may start
	Reason, Message string // why not; both empty if it may
}

// Admit refuses every pod from the moment a shutdown is known until it is
// cancelled, and from the call of TerminateAll on. It may be called at any time,
// from any goroutine, and never waits. How many it has refused is stored with the
// shutdown, so that the counter goes on after a restart.
//
// It also refuses a pod by its UID whose final status the API server has not acknowledged:
// a shutdown has ended that pod for good. A static pod is started again under its UID, and may
// be the API server itself: to ask for it withdraws that status, outside a shutdown, and the
// pod is admitted as soon as that is stored. Ask again until then. A nil pod is any pod.
func (m *Manager) Admit(pod *v1.Pod) Admission {
	if m.ShutdownStatus() == nil && !m.admission.finals.refuses(pod) {
		return Admission{Admit: true}
	}
	m.admission.refused.Add(1)
	m.opts.Metrics.PodsRefused(1)
	return Admission{Reason: NotAdmittedReason, Message: NotAdmittedMessage}
}

// ShutdownStatus is [ErrNodeShuttingDown] from the moment a shutdown is known
// until it is cancelled, and from the call of TerminateAll on; nil otherwise. A shutdown
// that a former agent has left is known from [NewManager] on.
func (m *Manager) ShutdownStatus() error { return m.admission.status() }

// admissionState says whether pods are admitted, and counts those that are not.
type admissionState struct {
	shuttingDown atomic.Bool               // a shutdown is known
	terminating  atomic.Bool               // since TerminateAll, for good
	refused      atomic.Uint64             // admissions, those that were stored included
	refusesUntil atomic.Pointer[time.Time] // before Run has found out what goes on; nil: it has
	finals       finals
}

func (a *admissionState) status() error {
	until := a.refusesUntil.Load()
	if a.shuttingDown.Load() || a.terminating.Load() || until != nil && time.Now().Before(*until) {
		return ErrNodeShuttingDown
	}
	return nil
}
