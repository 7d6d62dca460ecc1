package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// errInitFailed ends the start of a pod.
var errInitFailed = errors.New("an init container has failed")

// starter starts one pod when the earlier pods of the same name have ended.
type starter struct {
	*agent

	r       *record
	formers []*record // the earlier pods of the same name
	begun   bool      // a former agent has begun to start the pod, which was admitted then
}

// run starts the containers of a pod that is admitted. If that fails, the containers that
// run are terminated.
func (s *starter) run() {
	if s.poller.await(s.r.ctx) != nil {
		return
	}
	if !s.begun && (s.r.remote() == nil || !s.r.remote().is((*place).hasPod)) && !s.admit() {
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
	if over && !errors.Is(err, lifecycle.AgentStopping) {
		s.r.ender.endCompleted()
	}
}

// startAll starts the containers in the order of the spec. Each init container that is no
// sidecar has succeeded before the next container starts.
func (s *starter) startAll() error {
	if err := s.awaitFormers(); err != nil {
		return err
	}
	if remote := s.r.remote(); remote != nil {
		return remote.create()
	}
	for _, c := range s.r.containers.all {
		var err error
		if !(slot{s.r, c}).hasBegun() {
			err = s.start(c)
		}
		switch {
		case errors.Is(err, errAgain) && !c.init: // the others need not wait for it
			s.workers.spawn(s.r.name, func() {
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

// awaitFormers waits until the earlier pods of the same name have ended, and are deleted at their
// place.
func (s *starter) awaitFormers() error {
	for _, former := range s.formers {
		select {
		case <-former.ender.left:
		case <-s.r.terminating:
			return lifecycle.ErrTerminating
		case <-s.workers.closing:
			return lifecycle.AgentStopping
		}
	}
	return nil
}

// start starts one container, unless the pod is being deleted, and runs its postStart
// hook. If the hook fails, PostStart kills the container. If the start fails and the container
// is to be started again, the error is errAgain.
func (s *starter) start(c *container) error {
	if s.r.isTerminating() { // the life of the pod may not know of it yet
		return lifecycle.ErrTerminating
	}
	in := slot{s.r, c}
	pod := s.r.view()
	var started string
	called, known := false, false // known: it is known whether the container runs
	err := s.r.lifeOf(pod).Start(s.r.ctx, c.spec.Name, func(ctx context.Context) (string, error) {
		if !s.takeTurn(ctx) {
			return "", fmt.Errorf("%w: %w", lifecycle.ErrContainerNotFound, context.Cause(ctx))
		}
		defer s.endTurn()
		called = true
		in.countRestart()
		id, err := s.opts.Runtime.StartContainer(ctx, pod, c.spec)
		if id != "" && (err == nil || ctx.Err() != nil && !errors.Is(err, lifecycle.ErrContainerNotFound)) {
			started = id
			s.exits.expect(id)
			in.markRunning(id)
			s.workers.spawn(s.r.name, func() { in.watch(id) })
		}
		known = id != "" || ctx.Err() == nil || errors.Is(err, lifecycle.ErrContainerNotFound)
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", lifecycle.ErrContainerNotFound, err)
		}
		return id, err
	})
	switch {
	case err != nil && called && !known:
		in.markMaybeStarted()
		return err
	case errors.Is(err, lifecycle.ErrTerminating), errors.Is(err, lifecycle.AgentStopping), errors.Is(err, lifecycle.ErrForgotten):
		return err
	case err != nil:
		if in.markEnded(notStarted(err)) {
			return errAgain
		}
		return err
	}
	err = s.r.lifeOf(s.r.view()).PostStart(s.r.ctx, lifecycle.Container{Name: c.spec.Name, ID: started})
	if errors.Is(err, lifecycle.AgentStopping) {
		return err
	}
	return nil // a failed hook shows in the state of its container
}

// awaitInit waits until an init container has terminated with exit code 0.
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
		case <-s.r.terminating:
		case <-s.workers.closing:
			pause.Stop()
			return lifecycle.AgentStopping
		}
		pause.Stop()
		err := s.start(c)
		switch {
		case errors.Is(err, errAgain):
			continue
		case err != nil && s.r.isTerminating():
			in := slot{s.r, c}
			if id, end := in.lastRun(); end != nil && in.tellEnd(id, *end) {
				in.markNotAgain()
			}
		}
		return err
	}
}
