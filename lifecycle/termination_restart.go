package lifecycle

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// ShouldRestart reports whether the agent should start a sidecar again, with [Terminator.Start], that has
// exited while its pod is being terminated. Main containers and later sidecars may still need it
// (KEP-4438). It is true, also for a sidecar that KillContainer has stopped, while such containers are
// being stopped. left is then the time until the deadline.
//
// It is false, and left is 0, if the termination does not stop a sidecar of this name, if a start of it
// is under way, after the deadline, for a grace period of 1 s or less, and with a [PodStopper].
func (t *Termination) ShouldRestart(name string) (restart bool, left time.Duration) {
	t = t.orNone()
	t.pod.mu.Lock()
	defer t.pod.mu.Unlock()
	if !t.canRestart(name) {
		return false, 0
	}
	return true, time.Until(t.deadline.end)
}

// canRestart is ShouldRestart with the mutex held.
func (t *Termination) canRestart(name string) bool {
	if !t.inProgress() || t.isForgotten() || t.deadline.hasPassed() || t.deadline.granted <= graceperiod.MinimumPodSeconds || t.pod.terminator.opts.Pods != nil {
		return false
	}
	for c := range t.pod.starts {
		if c.name == name && !c.returned {
			return false
		}
	}
	_, role := findContainer(t.apiPod, name)
	return t.pod.isBlocked(role) && slices.ContainsFunc(t.stops, func(s *stop) bool { return s.container.Name == name })
}
