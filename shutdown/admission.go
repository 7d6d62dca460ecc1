package shutdown

import (
	"errors"
	"sync/atomic"
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

// end records that TerminateAll was called.
func (a *admissionState) end() { a.ending.Store(true) }

// ends reports whether TerminateAll was called.
func (a *admissionState) ends() bool { return a.ending.Load() }

// refuse counts refusals.
func (a *admissionState) refuse(n uint64) { a.refused.Add(n) }

// refusals returns their number.
func (a *admissionState) refusals() uint64 { return a.refused.Load() }
