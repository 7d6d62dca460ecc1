package virtualkubelet

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// runEnded reports the end of a run, and restarts the container if the restart policy says so. When the
// last regular container has ended for good, the pod has completed, and its sidecars are terminated.
func (r *record) runEnded(ended run, end v1.ContainerStateTerminated) {
	if !r.reportEnd(ended.c, ended.id) {
		return
	}
	if r.markEnded(ended.c, end) {
		_ = r.restart(ended.c) // an error shows in the container's state
	}
	r.endIfDone()
}

// reportEnd calls [Options.ContainerEnded] until it succeeds, with increasing pauses. It returns false if the provider
// is closed before that; the end then must not become visible, so that the next agent reports it.
func (r *record) reportEnd(c *container, id string) (reported bool) {
	ended := r.agent.opts.ContainerEnded
	if ended == nil || id == "" {
		return true
	}
	var failed failures
	for pause := backOffFirst; ; pause = min(2*pause, backOffMost) {
		err := r.callGuarded(r.ctx, "ContainerEnded of container "+c.spec.Name, callTimeout, func() error { return ended(r.ctx, r.podWithStatus(), c.spec, id) })
		failed.log(r.ctx, err, "Failed to clean up after a container, will try again", "Cleaned up after a container after earlier failures", "pod", r.name, "containerID", id)
		if err == nil {
			return true
		}
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			return false
		}
	}
}

// markEnded records the end of a run, as final or as followed by a restart. If mustRestart is true, the caller must
// restart the container.
func (r *record) markEnded(c *container, end v1.ContainerStateTerminated) (mustRestart bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	mustRestart = !r.ending.terminating && c.restartsAfter(r.desired.pod, end)
	switch {
	case r.ending.terminating && c.restarting: // a failed restart is not the end of a run: keepLastEnd makes the end of the last run final
	case mustRestart:
		c.markRestarting(r.desired.pod, end)
	default:
		c.markTerminated(end)
	}
	r.containers.refreshReady()
	r.wake()
	return mustRestart
}

// markTerminated records the final end of a container.
func (r *record) markTerminated(c *container, end v1.ContainerStateTerminated) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.markTerminated(end)
	r.containers.refreshReady()
	r.wake()
}
