package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"
)

// ending is how far the end of a pod has come. The mutex of the record guards it.
type ending struct {
	starting  bool                // its start has not ended, and so it has not, either
	begun     bool                // its termination has begun, or is about to
	settled   bool                // a termination has ended, and exits are known
	stuck     error               // why containers run all the same
	setStatus func(*v1.PodStatus) // of the last kill; nil: there was none
	settling  bool                // the status is being made final
	final     *v1.PodStatus       // nil: it is not
	told      bool                // virtual-kubelet has heard of that
	kills     int                 // calls of KillPod, during which the pod is not forgotten
	forgotten bool
}

// settle notes how a termination has ended, with the error of containers that could not
// be stopped.
func (e *ending) settle(stuck error) { e.settled, e.stuck = true, stuck }

// due tells, once, that the status is to be made final. mayRun tells whether any
// container runs, or may.
func (e *ending) due(mayRun bool) bool {
	if e.settling || !e.settled || e.starting || mayRun {
		return false
	}
	e.settling = true
	return true
}

// whyStuck is why the last attempt to stop the containers has failed, nil for a pod that
// has ended or is about to.
func (e *ending) whyStuck() error {
	if e.settling {
		return nil
	}
	return e.stuck
}

// forget notes that the pod is forgotten, unless somebody waits for its end.
func (e *ending) forget() bool {
	e.forgotten = e.forgotten || e.kills == 0
	return e.forgotten
}
