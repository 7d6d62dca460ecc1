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

// markEnded records the end of a run of the container, and reports whether the container is to
// be started again.
func (s slot) markEnded(end v1.ContainerStateTerminated) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again = !s.ending.terminating && s.c.restarts(s.desired.pod, end)
	if again {
		s.c.markAgain(s.desired.pod, end)
	} else {
		s.c.markTerminated(end)
	}
	s.containers.refreshReady()
	s.notifier.wake()
	return again
}

// markNotAgain gives a container that is not started again the state of its last end.
func (s slot) markNotAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c.restarting {
		s.c.markTerminated(*s.c.last)
	}
}
