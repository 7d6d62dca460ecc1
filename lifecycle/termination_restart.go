package lifecycle

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// ShouldRestart reports whether the agent should start a sidecar again with [Terminator.Start], after
// the sidecar has exited during its pod's termination. It returns true while main containers or later
// sidecars, which may need the sidecar, are being stopped (KEP-4438), even if KillContainer stopped the
// sidecar. left is the time until the deadline.
//
// It returns false and 0
//
//   - for a container that is not a sidecar of this termination, or of which a start is in progress;
//   - after the deadline, and for a grace period of 1 s or less;
//   - with a [PodStopper], which stops the pod as a unit;
//   - if all requests name their containers ([Request].Containers), because nothing else is then stopped.
func (t *Termination) ShouldRestart(name string) (restart bool, left time.Duration) {
	t = t.orEndedIfUnset()
	t.pod.mu.Lock()
	defer t.pod.mu.Unlock()
	if !t.canRestart(name) {
		return false, 0
	}
	return true, time.Until(t.deadline.end)
}

// canRestart reports whether a container that has exited may be started again: it was running during this
// termination, no start of it is in progress, main containers or later sidecars may still need it, and there is time
// for a start. The caller holds the mutex.
func (t *Termination) canRestart(name string) bool {
	stopsNewRuns := t.inProgress() && !t.isForgotten() && t.usesLists()
	if !stopsNewRuns {
		return false
	}
	hasTime := !t.deadline.hasPassed() && t.deadline.granted > graceperiod.MinimumPodSeconds // the minimum is too short for a start
	stopsTogether := t.pod.terminator.opts.Pods != nil
	if !hasTime || stopsTogether {
		return false
	}
	for start := range t.pod.starts {
		if start.name == name && !start.returned {
			return false
		}
	}
	_, role := findContainer(t.apiPod, name)
	wasRunning := slices.ContainsFunc(t.stops, func(s *containerStop) bool { return s.container.Name == name })
	isNeeded := t.pod.isBlocked(role) // a container that stops before the sidecar may be running; false if it is no sidecar
	return wasRunning && isNeeded
}
