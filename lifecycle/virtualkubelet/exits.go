package virtualkubelet

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
)

// watch follows a container that runs to its end, and starts it again if the pod's restart
// policy says so. When the last regular container has ended for good, the pod has completed and
// its sidecars are terminated.
func (r *record) watch(c *container, id string) {
	end, ok := r.awaitEnd(c, id)
	if !ok {
		return
	}
	if ended := r.agent.opts.ContainerEnded; ended != nil {
		ctx, cancel := r.agent.workers.context(r.ctx, r.name, nil)
		_ = guarded(ctx, "ContainerEnded", func() error { // a panic was logged
			ended(ctx, r.view(), c.spec, id)
			return nil
		})
		cancel()
	}
	if r.markEnded(c, end) {
		_ = (&starter{agent: r.agent, r: r}).again(c) // shows in the state of the container
	}
	r.over()
}

// awaitEnd waits for the end of a container and returns its state; false if the agent stops
// before.
func (r *record) awaitEnd(c *container, id string) (end v1.ContainerStateTerminated, ok bool) {
	exited := r.agent.exits.Exited(id)
	select {
	case <-exited: // nil: it cannot be watched
		end = unknownEnd()
		if code, known := r.agent.opts.Runtime.ExitCode(id); known {
			end = exitedWith(code)
		}
	case <-c.lost:
		end = unknownEnd()
	case <-r.agent.workers.closing:
		return end, false
	}
	r.agent.exits.forget(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	closeOnce(c.seen)
	return end, true
}

// awaitExit waits for watch to see the exit of a stopped container, because the runtime may
// report the exit later than the end of the stop. After until the container counts as ended
// with an unknown exit code.
func (r *record) awaitExit(id string, until time.Time) {
	r.mu.Lock()
	c := r.containers.withID(id)
	if c == nil {
		r.mu.Unlock()
		return
	}
	seen, lost := c.seen, c.lost
	r.mu.Unlock()
	slack := time.NewTimer(time.Until(until))
	defer slack.Stop()
	select {
	case <-seen:
	case <-r.agent.workers.closing:
	case <-slack.C:
		r.mu.Lock()
		defer r.mu.Unlock()
		closeOnce(lost)
	}
}

// closeOnce closes a channel that may be closed already. The caller excludes others.
func closeOnce(c chan struct{}) {
	if !isClosed(c) {
		close(c)
	}
}

// pollRunning asks the runtime which containers run, and has the others exit.
func (p *poller) pollRunning(ctx context.Context, asked time.Time) error {
	ids, err := p.exits.lister.RunningContainers(ctx)
	if err == nil {
		p.exits.take(ids, asked)
	}
	return err
}
