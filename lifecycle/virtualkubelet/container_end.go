package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/times"
)

// runEnded reports the end of a run, and restarts the container if the restart policy says so. When the
// last regular container has ended for good, the pod has completed, and its sidecars are terminated.
func (p *containerPod) runEnded(ended run, end v1.ContainerStateTerminated) {
	if isReported := p.reportEnd(ended.c, ended.id); !isReported {
		return // the provider is closed, and the next agent reports this end
	}
	if mustRestart := p.markEnded(ended.c, end); mustRestart {
		_ = p.restart(ended.c) // an error shows in the container's state
	}
	p.endIfDone()
}

// reportEnd calls [Options.ContainerEnded] until it succeeds, with increasing pauses. It returns false if the provider
// is closed before that. No status may then show the end: the next agent calls ContainerEnded again.
func (p *containerPod) reportEnd(c *container, id string) (reported bool) {
	ended := p.provider.opts.ContainerEnded
	if ended == nil || id == "" {
		return true
	}
	for pause := backOffFirst; ; pause = min(2*pause, backOffMost) {
		err := p.callGuarded(p.ctx, "ContainerEnded of container "+c.spec.Name, callTimeout, func() error { return ended(p.ctx, p.podWithStatus(), c.spec, id) })
		if err == nil {
			return true
		}
		if isClosed := times.Sleep(p.ctx, pause) != nil; isClosed {
			return false
		}
	}
}

// markEnded records the end of a run, as final or as followed by a restart. If mustRestart is true, the caller must
// restart the container.
func (p *containerPod) markEnded(c *container, end v1.ContainerStateTerminated) (mustRestart bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mustRestart = !p.ending.terminating && c.restartsAfter(p.desired.pod, end)
	isAbandonedRestart := p.ending.terminating && c.restarting // no run has ended: keepLastEnd makes the end of the last one final
	switch {
	case isAbandonedRestart:
	case mustRestart:
		c.markRestarting(p.desired.pod, end)
	default:
		c.markTerminated(end)
	}
	p.wakeSender()
	return mustRestart
}

// markTerminated records the final end of a container.
func (p *containerPod) markTerminated(c *container, end v1.ContainerStateTerminated) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.markTerminated(end)
	p.wakeSender()
}
