package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

// ending is the progress of a pod's end. The record's mutex guards it.
type ending struct {
	starting    bool                // its start is under way, so it has not ended
	terminating bool                // its termination has begun
	terminated  bool                // a termination has ended, and the exits are known
	stuck       error               // why containers run although a termination has ended
	setStatus   func(*v1.PodStatus) // SetStatus of the last kill; nil: none
	refusal     *shutdown.Admission // why the pod was not admitted; nil: it was
	finalizing  bool                // the final status is being made
	final       *v1.PodStatus       // nil: not final
	finalSent   bool                // virtual-kubelet has the final status
	kills       int                 // calls of KillPod under way, during which the pod is not forgotten
	forgotten   bool
}

// terminationEnded records the end of a termination; stuck is the error of containers
// that could not be stopped, or nil.
func (e *ending) terminationEnded(stuck error) { e.terminated, e.stuck = true, stuck }

// startFinalizing returns true once, when the final status is to be made. mayRun tells
// whether any container runs or may run.
func (e *ending) startFinalizing(mayRun bool) bool {
	if e.finalizing || !e.terminated || e.starting || mayRun {
		return false
	}
	e.finalizing = true
	return true
}

// whyStuck returns why the last attempt to stop the containers failed, or nil if the pod
// has ended or is ending.
func (e *ending) whyStuck() error {
	if e.finalizing {
		return nil
	}
	return e.stuck
}

// forget marks the pod as forgotten, unless a KillPod waits for its end, and reports
// whether it is.
func (e *ending) forget() bool {
	e.forgotten = e.forgotten || e.kills == 0
	return e.forgotten
}
