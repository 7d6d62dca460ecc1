package lifecycle

import (
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// ShouldRestart tells whether a sidecar that has died while its pod is being
// terminated is to be started again, because its turn to stop has not come and the
// main containers may still need it, and for how long at most (KEP-4438). It is so
// while others are left that stop before it, unless the grace is 1 s or less. The
// agent starts it with [Terminator.Start]. For a name that is no sidecar's of the
// termination it is false.
func (t *Termination) ShouldRestart(name string) (restart bool, left time.Duration) {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	if t.restartableLocked(name) == nil {
		return false, 0
	}
	return true, time.Until(t.deadline.at())
}

// restartableLocked finds a sidecar that may be started again, nil if there is none.
func (t *Termination) restartableLocked(name string) *container {
	if t.active == nil || t.deadline.granted <= graceperiod.MinimumPodSeconds {
		return nil
	}
	for _, c := range t.active.containers {
		if c.result.Name == name && c.ending && !c.starting() && c.result.ID != "" && c.firstLocked() != nil {
			return c
		}
	}
	return nil
}
