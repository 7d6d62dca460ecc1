package virtualkubelet

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// watch follows a container that runs to its end, and starts it again if the pod's restart
// policy says so. When the last regular container has ended for good, the pod has completed and
// its sidecars are terminated.
func (s slot) watch(id string) {
	end, ok := s.awaitEnd(id)
	if !ok || !s.tellEnd(id, end) {
		return
	}
	if s.markEnded(end) {
		_ = (&starter{agent: s.agent, r: s.record}).again(s.c) // shows in the state of the container
	}
	s.over()
}

// tellEnd calls [Options.ContainerEnded], with increasing pauses until it succeeds; false if the
// agent stops before.
func (s slot) tellEnd(id string, end v1.ContainerStateTerminated) (told bool) {
	ended := s.agent.opts.ContainerEnded
	if ended == nil || id == "" {
		return true
	}
	ctx, cancel := s.agent.workers.context(s.ctx, s.name, nil)
	defer cancel()
	for pause := backOffFirst; ; pause = min(2*pause, backOffMost) {
		again := s.isStartedAgain(end)
		err := guarded(ctx, "ContainerEnded", func() error { return ended(ctx, s.view(), s.c.spec, id, again) })
		if err == nil {
			return true
		}
		klog.FromContext(ctx).V(1).Info("What is left of a container was not removed", "pod", s.name, "id", id, "err", err)
		select {
		case <-time.After(pause):
		case <-s.agent.workers.closing:
			return false
		}
	}
}

// adoptEnd tells of a container that had ended before it was adopted, and ends its pod if that has
// waited for it.
func (s slot) adoptEnd(id string, end v1.ContainerStateTerminated) {
	if !s.tellEnd(id, end) {
		return
	}
	s.mu.Lock()
	s.containers.untold--
	s.mu.Unlock()
	s.over()
}

// awaitEnd waits for the end of a container and returns its state; false if the agent stops
// before.
func (s slot) awaitEnd(id string) (end v1.ContainerStateTerminated, ok bool) {
	var exited <-chan struct{}
	_ = safely(s.ctx, "Exited", func() { exited = s.agent.exits.Exited(id) }) // a panic was logged
	end = unknownEnd()
	select {
	case <-exited: // nil: it cannot be watched
		_ = safely(s.ctx, "ExitCode", func() {
			if code, known := s.agent.opts.Runtime.ExitCode(id); known {
				end = exitedWith(code)
			}
		})
	case <-s.c.lost:
	case <-s.agent.workers.closing:
		return end, false
	}
	s.agent.exits.forget(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	closeOnce(s.c.seen)
	return end, true
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
