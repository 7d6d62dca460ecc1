package virtualkubelet

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// watch notes the exit of a container. When the last regular one has exited, the pod
// is over, and its sidecars are ended.
func (p *Provider) watch(r *record, c *container) {
	select {
	case <-p.opts.Runtime.Exited(c.id):
	case <-p.closing:
		return
	}
	p.down(r, c, exitedWith(p.opts.Runtime.ExitCode(c.id)))
	p.mu.Lock()
	over := !r.terminating && r.doneLocked()
	p.mu.Unlock()
	if over {
		p.endItself(r)
	}
	p.settle(r)
}

// down notes the end of a container.
func (p *Provider) down(r *record, c *container, end v1.ContainerStateTerminated) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.downLocked(end)
	r.changeLocked()
}

// awaitExit waits for the exit of a container that has been stopped: runtimes tell
// of it by another way, and later. One that does not in time has an unknown end.
func (p *Provider) awaitExit(r *record, id string, until time.Time) {
	c := p.containerOf(r, id)
	if c == nil {
		return
	}
	slack := time.NewTimer(time.Until(until))
	defer slack.Stop()
	select {
	case <-c.exited:
	case <-p.closing:
	case <-slack.C:
		p.down(r, c, unknownEnd())
	}
}

// containerOf finds a container by its ID, nil if it has none.
func (p *Provider) containerOf(r *record, id string) *container {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range r.containers {
		if c.id == id && id != "" {
			return c
		}
	}
	return nil
}
