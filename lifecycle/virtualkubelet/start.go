package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// errInitFailed ends the start of a pod.
var errInitFailed = errors.New("an init container has failed")

// starter starts one pod when the earlier pods of the same name have ended.
type starter struct {
	*agent

	r       *record
	earlier []*record // the earlier pods of the same name
	begun   bool      // a previous agent has begun to start the pod, which was admitted then
}

// run starts the containers of a pod that is admitted. If that fails, the containers that
// run are terminated.
func (s *starter) run() {
	if s.poller.await(s.r.ctx) != nil {
		return
	}
	if !s.hasBegun() && !s.admit() {
		return
	}
	err := s.startAll()
	s.r.mu.Lock()
	s.r.ending.starting = false
	over := !s.r.ending.terminating && (err != nil || !s.r.body.goesOn())
	s.r.mu.Unlock()
	if err != nil {
		klog.FromContext(s.r.ctx).V(1).Info("Pod is not started any further", "pod", s.r.name, "err", err)
	}
	s.r.ender.finalize()
	if over && !s.isClosed() {
		s.r.ender.endCompleted()
	}
}

// hasBegun reports whether the pod has been admitted by a previous agent.
func (s *starter) hasBegun() bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	whole := s.r.whole()
	return s.begun || whole != nil && whole.isKnown()
}

// startAll starts the containers in the order of the spec. Each init container that is no
// sidecar has succeeded before the next container starts.
func (s *starter) startAll() error {
	if err := s.awaitEarlier(); err != nil {
		return err
	}
	if whole := s.r.whole(); whole != nil {
		return whole.create()
	}
	for _, c := range s.r.containers.all {
		var err error
		if !s.isStarted(c) {
			err = s.start(c)
		}
		switch {
		case errors.Is(err, errAgain) && !c.init: // the others need not wait for it
			s.spawn(s.r.name, func() {
				_ = s.again(c) // shows in the state of the container
				s.r.over()
			})
			continue
		case errors.Is(err, errAgain):
			err = s.again(c)
		}
		if err != nil {
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

// isStarted reports whether a container has been started before, by this agent or a previous one.
func (s *starter) isStarted(c *container) bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return c.state != v1.ContainerState{}
}

// awaitEarlier waits until the earlier pods of the same name have ended, and their pod runtime has
// forgotten them.
func (s *starter) awaitEarlier() error {
	for _, other := range s.earlier {
		select {
		case <-other.ender.left:
		case <-s.r.active.Done():
			return context.Cause(s.r.active)
		}
	}
	return nil
}

// start starts one container, unless the pod is being deleted, and runs its postStart hook. If the
// hook fails, PostStart kills the container. If the start fails, the runtime is asked whether the
// container runs all the same. If it does not and is to be started again, the error is errAgain.
func (s *starter) start(c *container) error {
	if s.r.active.Err() != nil { // the terminator may not know of it yet
		return context.Cause(s.r.active)
	}
	var started string
	var failed error
	pod := s.r.view()
	err := s.terminator.Start(s.r.ctx, pod, c.spec.Name, func(ctx context.Context) error {
		started, failed = s.startContainer(ctx, pod, c)
		return failed
	})
	if err != nil {
		if s.r.active.Err() != nil {
			return context.Cause(s.r.active)
		}
		if failed == nil { // it has panicked
			failed = err
		}
		klog.FromContext(s.r.ctx).V(1).Info("The start of a container failed", "pod", s.r.name, "containerName", c.spec.Name, "err", failed)
		if started, err = s.r.listedAs(c); err != nil && s.r.active.Err() != nil {
			return context.Cause(s.r.active)
		}
		if started == "" || err != nil {
			if s.r.markEnded(c, notStarted(errors.Join(failed, err))) {
				return errAgain
			}
			return failed
		}
		s.r.markRunning(c, started)
	}
	err = s.terminator.PostStart(s.r.ctx, s.r.view(), lifecycle.Container{Name: c.spec.Name, ID: started})
	if errors.Is(err, lifecycle.ErrClosed) {
		return err
	}
	return nil // a failed hook shows in the state of its container
}

// startContainer calls StartContainer when it is its turn.
func (s *starter) startContainer(ctx context.Context, pod *v1.Pod, c *container) (id string, err error) {
	err = s.inTurn(ctx, func() (err error) {
		s.r.mu.Lock()
		if c.restarting {
			c.restarted++
		}
		s.r.mu.Unlock()
		if id, err = s.opts.Runtime.StartContainer(ctx, pod, c.spec); err != nil {
			return err
		}
		return checkID(id)
	})
	if err == nil {
		s.r.markRunning(c, id)
	}
	return id, err
}

// awaitInit waits until an init container has terminated with exit code 0.
func (s *starter) awaitInit(c *container) error {
	select {
	case <-c.exited:
	case <-s.r.ctx.Done():
		return context.Cause(s.r.ctx)
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if code := c.state.Terminated.ExitCode; code != 0 {
		return fmt.Errorf("%w: %s with exit code %d", errInitFailed, c.spec.Name, code)
	}
	return nil
}

// again starts a container again when its back-off is over, and again after each start that
// fails. If the termination of the pod begins before, the container stays as it has ended, which is
// told.
func (s *starter) again(c *container) error {
	for {
		s.r.mu.Lock()
		pause := time.NewTimer(time.Until(c.againAt))
		s.r.mu.Unlock()
		select {
		case <-pause.C:
		case <-s.r.active.Done():
		}
		pause.Stop()
		if s.isClosed() {
			return lifecycle.ErrClosed
		}
		err := s.start(c)
		if errors.Is(err, errAgain) {
			continue
		}
		if err != nil && s.r.isTerminating() {
			s.stay(c)
		}
		return err
	}
}

// stay gives a container that is not started again the state of its last end, once that is told.
func (s *starter) stay(c *container) {
	s.r.mu.Lock()
	isWaiting, id, last := c.restarting, c.id, c.last
	s.r.mu.Unlock()
	if isWaiting && s.r.tellEnd(c, id, *last) {
		s.r.markTerminated(c, *last)
	}
}
