package virtualkubelet

import (
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
)

// place is what is known of a pod at the place of a [PodRuntime]. The record's mutex guards it.
type place struct {
	creating bool          // a Create is under way
	made     bool          // a Create has succeeded
	over     bool          // nothing of the pod runs: it has not been created, or has ended
	gone     bool          // the place has nothing of the pod
	owed     bool          // the place may keep something of the pod until a Delete has been answered
	since    time.Time     // lists that were asked for before, or then, say nothing about the pod
	status   *v1.PodStatus // as of the last list that had the pod; never modified; nil: none had it
	changed  chan struct{} // closed by the next change
}

// newPlace returns a place of which nothing is known before the first list, and that has
// nothing of the pod after it.
func newPlace(isListed bool) *place {
	return &place{over: isListed, gone: isListed, changed: make(chan struct{})}
}

// hasPod reports whether the place is known to have the pod.
func (p *place) hasPod() bool { return !p.gone && !p.creating && (p.made || p.status != nil) }

// wake wakes those who wait for a change.
func (p *place) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// startCreating marks that a Create is under way: the pod may run from now on.
func (p *place) startCreating() { p.creating, p.over, p.gone = true, false, false }

// created marks that a Create has returned, and whether it has created the pod for certain, or
// certainly not. If neither is known, the next list tells.
func (p *place) created(made, none bool) {
	p.creating, p.made, p.over, p.gone, p.since = false, made, none, none, time.Now()
	p.owed = p.owed || !none
	p.wake()
}

// cleared reports whether the place keeps nothing of the pod.
func (p *place) cleared() bool { return p.gone && !p.owed }

// lose marks that the place has nothing of the pod.
func (p *place) lose() {
	if p.gone {
		return
	}
	p.over, p.gone = true, true
	p.wake()
}

// observe takes over what a list says that was asked for at a time: the status of the pod, or
// nil if the list lacks it. It returns whether there is a new status.
func (p *place) observe(status *v1.PodStatus, asked time.Time) (isNew bool) {
	if p.creating || !asked.After(p.since) {
		return false
	}
	if status == nil {
		p.lose()
		return false
	}
	p.gone, p.owed = false, true
	if p.status != nil && isTerminal(p.status) {
		return false
	}
	wasOver := p.over
	if p.over = isTerminal(status); p.over == wasOver && reflect.DeepEqual(p.status, status) {
		return false
	}
	p.status = status.DeepCopy()
	p.wake()
	return true
}

// isTerminal reports whether the place says that the pod has ended.
func isTerminal(status *v1.PodStatus) bool {
	return status.Phase == v1.PodSucceeded || status.Phase == v1.PodFailed
}

// write writes what the place says into the status of a pod, except for phase and containers.
func (p *place) write(status *v1.PodStatus) {
	if p.status == nil {
		return
	}
	before := status.Conditions
	start := status.StartTime
	p.status.DeepCopyInto(status)
	if len(status.Conditions) == 0 {
		status.Conditions = before
	}
	if status.StartTime == nil {
		status.StartTime = start
	}
}

// phase returns the phase of a pod, for which that of its containers is known.
func (p *place) phase(ofContainers v1.PodPhase, ended bool) v1.PodPhase {
	switch {
	case p.status == nil || p.status.Phase == "":
		return ofContainers
	case isTerminal(p.status) == ended:
		return p.status.Phase
	case ended: // it was lost
		return v1.PodFailed
	default:
		return v1.PodRunning
	}
}
