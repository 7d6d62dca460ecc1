package lifecycle

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// ShouldRestart tells whether a sidecar that has died while its pod is being
// terminated is to be started again, because its turn to stop has not come and the
// main containers may still need it, and for how long at most (KEP-4438). It is so
// while others are left that stop before it, unless the grace is 1 s or less. The
// agent starts it with [Terminator.Start]. For a name that is no sidecar's of the
// termination it is false.
func (t *Termination) ShouldRestart(name string) (restart bool, left time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.restartableLocked(name); c != nil {
		return true, time.Until(t.deadlineLocked())
	}
	return false, 0
}

// restartableLocked finds a sidecar that may be started again, nil if there is none.
func (t *Termination) restartableLocked(name string) *container {
	if t.over || t.granted <= graceperiod.MinimumPodSeconds {
		return nil
	}
	for i := range t.containers {
		c := &t.containers[i]
		if c.result.Name == name && c.role >= roleFirstSidecar && !c.starting && c.kill == nil && !c.hasTurnLocked() {
			return c
		}
	}
	return nil
}

// admitRestart lets a start through that is of a sidecar which should be started
// again, and binds it to the sidecar's turn.
func (t *Termination) admitRestart(g *guest) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.restartableLocked(g.name)
	if c == nil || c.restart != nil {
		return false
	}
	g.awaits = c
	c.restart = func() { g.cancel(ErrTerminating) }
	return true
}

// RunOnExit runs the preStop hook of a container that has ended by itself, which the
// kubelet does not do (k/k#55807): an agent that wants it asks for it. The hook has
// the grace of the container, [Terminator.Close] ends it, and it is not run again if the
// container is killed or its pod terminated later. An exec hook fails, as its
// container is gone, and a sleep ends at once where there is an [ExitWatcher].
//
// ctx bounds the waiting only: when it ends, the error is a [*StillRunningError]. What
// the hook itself says is in the result.
func (tr *Terminator) RunOnExit(ctx context.Context, pod *v1.Pod, c Container) (HookResult, error) {
	spec, _ := findContainer(pod, c.Name)
	seconds := graceperiod.ForContainer(pod, spec, graceperiod.ReasonUnknown)
	result, err := tr.kill(ctx, pod, c, seconds, func(t *Termination) { t.exited = true })
	return result.Hook, err
}
