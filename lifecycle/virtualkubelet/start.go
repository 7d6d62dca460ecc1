package virtualkubelet

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// errInitFailed is why a pod is not started any further.
var errInitFailed = errors.New("an init container has failed")

// starter starts one pod, once the former one of its name has ended.
type starter struct {
	*agent

	r      *record
	former *record // nil: there is none
}

// run starts the containers. A pod that cannot be started is ended, with what runs of
// it.
func (s *starter) run() {
	err := s.startAll()
	s.r.mu.Lock()
	s.r.ending.starting = false
	over := !s.r.ending.begun && (err != nil || !s.r.containers.regularRuns())
	s.r.mu.Unlock()
	if err != nil {
		klog.FromContext(s.r.ctx).V(1).Info("Pod is not started any further", "pod", s.r.name, "err", err)
	}
	s.r.ender.settle()
	if over && !errors.Is(err, lifecycle.AgentStopping) {
		s.r.ender.endItself()
	}
}

// startAll starts the containers in the order of the spec; plain init containers have
// ended well before the next one starts.
func (s *starter) startAll() error {
	if err := s.awaitFormer(); err != nil {
		return err
	}
	for _, c := range s.r.containers.all {
		if err := s.start(c); err != nil {
			return err
		}
		if !c.init || c.sidecar() {
			continue
		}
		if err := s.awaitInit(c); err != nil {
			return err
		}
	}
	return nil
}

// awaitFormer waits until the former pod of the name has ended.
func (s *starter) awaitFormer() error {
	if s.former == nil {
		return nil
	}
	select {
	case <-s.former.ended:
		return nil
	case <-s.r.deleting:
		return lifecycle.ErrTerminating
	case <-s.workers.closing:
		return lifecycle.AgentStopping
	}
}

// start starts one container, unless the pod is being deleted, and runs its postStart
// hook, which kills the container if it fails.
func (s *starter) start(c *container) error {
	pod := s.r.view()
	var started string
	called, known := false, false // known: whether the container runs, and its ID
	err := s.terminator.Start(s.r.ctx, pod, c.spec.Name, func(ctx context.Context) (string, error) {
		called = true
		id, err := s.opts.Runtime.StartContainer(ctx, pod, c.spec)
		if id != "" && (err == nil || ctx.Err() != nil && !errors.Is(err, lifecycle.ErrContainerNotFound)) {
			started = id
			s.r.up(c, id)
			s.workers.spawn(s.r.name, func() { s.r.watch(c, id) })
		}
		known = id != "" || ctx.Err() == nil || errors.Is(err, lifecycle.ErrContainerNotFound)
		return id, err
	})
	switch {
	case errors.Is(err, lifecycle.ErrTerminating), errors.Is(err, lifecycle.AgentStopping):
		if called && !known {
			s.r.lose(c)
		}
		return err
	case err != nil:
		s.r.down(c, notStarted(err))
		return err
	}
	err = s.terminator.PostStart(s.r.ctx, pod, lifecycle.Container{Name: c.spec.Name, ID: started})
	if errors.Is(err, lifecycle.AgentStopping) {
		return err
	}
	return nil // one that has failed shows in the state of its container
}

// awaitInit waits until a plain init container has ended well.
func (s *starter) awaitInit(c *container) error {
	select {
	case <-c.exited:
	case <-s.workers.closing:
		return lifecycle.AgentStopping
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if code := c.state.Terminated.ExitCode; code != 0 {
		return fmt.Errorf("%w: %s with exit code %d", errInitFailed, c.spec.Name, code)
	}
	return nil
}
