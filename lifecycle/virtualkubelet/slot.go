package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// slot is a container of a pod, whose changes it makes known.
type slot struct {
	*record

	c *container
}

// markRunning records that the container runs.
func (s slot) markRunning(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.markRunning(id, metav1.Now())
	s.containers.refreshReady()
	s.notifier.wake()
}

// countRestart counts a start of a container that has run before.
func (s slot) countRestart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c.restarting {
		s.c.restarted++
	}
}

// markTerminated records the end of the container for good.
func (s slot) markTerminated(end v1.ContainerStateTerminated) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.markTerminated(end)
	s.containers.refreshReady()
	s.notifier.wake()
}

// markMaybeStarted records that the container may run although its start was cancelled.
func (s slot) markMaybeStarted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.maybeStarted = true
}

// isStartedAgain reports whether the container is to be started again after an end.
func (s slot) isStartedAgain(end v1.ContainerStateTerminated) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ending.terminating && s.c.restarts(s.desired.pod, end)
}

// hasBegun reports whether the container has been started before, by this agent or a former one.
func (s slot) hasBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c.state != v1.ContainerState{}
}

// markEnded records the end of a run of the container, and reports whether the container is to
// be started again.
func (s slot) markEnded(end v1.ContainerStateTerminated) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again = !s.ending.terminating && s.c.restarts(s.desired.pod, end)
	switch {
	case s.ending.terminating && s.c.restarting: // again gives it the state of its last end
	case again:
		s.c.markAgain(s.desired.pod, end)
	default:
		s.c.markTerminated(end)
	}
	s.containers.refreshReady()
	s.notifier.wake()
	return again
}

// lastRun returns the ID and the end of the last run of a container that is to be started again; nil
// if it is not, and the ID "" if it has not run.
func (s slot) lastRun() (id string, end *v1.ContainerStateTerminated) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.c.restarting {
		return "", nil
	}
	return s.c.id, s.c.last
}

// markNotAgain gives a container that is not started again the state of its last end.
func (s slot) markNotAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c.restarting {
		s.c.markTerminated(*s.c.last)
	}
}
