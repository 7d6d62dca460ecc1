package shutdown

import (
	"errors"

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
func (m *Manager) Admit(*v1.Pod) Admission {
	if m.ShutdownStatus() == nil {
		return Admission{Admit: true}
	}
	m.refused.Add(1)
	m.opts.Metrics.PodsRefused(1)
	return Admission{Reason: NotAdmittedReason, Message: NotAdmittedMessage}
}

// ShutdownStatus is [ErrNodeShuttingDown] from the moment a shutdown is known
// until it is cancelled, and from the call of TerminateAll on; nil otherwise.
func (m *Manager) ShutdownStatus() error {
	if m.shuttingDown.Load() || m.terminating.Load() {
		return ErrNodeShuttingDown
	}
	return nil
}
