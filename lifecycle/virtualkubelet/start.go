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

// errInitFailed ends a pod's start.
var errInitFailed = errors.New("an init container has failed")

// starter starts one pod once the earlier pods with its name have ended.
type starter struct {
	*agent

	r       *record
	earlier []*record // the earlier pods with the same name
	begun   bool      // a previous agent has admitted the pod and begun to start it
}

// run admits the pod and starts its containers. If a start fails, it terminates the running ones.
func (s *starter) run() {
	if s.poller.await(s.r.ctx) != nil {
		return
	}
	if !s.wasAdmitted() && !s.admit() {
		return
	}
	err := s.startAll()
	s.r.mu.Lock()
	s.r.ending.starting = false
	over := !s.r.ending.terminating && (err != nil || !s.r.body.incomplete())
	s.r.mu.Unlock()
	if err != nil {
		klog.FromContext(s.r.ctx).V(1).Info("Stopped starting a pod", "pod", s.r.name, "err", err)
	}
	s.r.ender.finalize()
	if over && !s.isClosed() {
		s.r.ender.endCompleted()
	}
}

// wasAdmitted reports whether a previous agent has admitted the pod.
func (s *starter) wasAdmitted() bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	whole := s.r.whole()
	return s.begun || whole != nil && whole.isKnown()
}

// startAll starts the containers in the order of the spec. It waits until each plain init container has
// succeeded.
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
		case errors.Is(err, errWillRestart) && !c.init: // the other containers need not wait
			s.spawn(s.r.name, func() {
				_ = s.restart(c) // an error shows in the container's state
				s.r.endIfDone()
			})
			continue
		case errors.Is(err, errWillRestart):
			err = s.restart(c)
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

// isStarted reports whether this agent or a previous one has started the container.
func (s *starter) isStarted(c *container) bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return c.state != v1.ContainerState{}
}

// awaitEarlier waits until the earlier pods with the same name have ended and, with a PodRuntime, have
// been deleted.
func (s *starter) awaitEarlier() error {
	for _, other := range s.earlier {
		select {
		case <-other.ender.nameFree:
		case <-s.r.active.Done():
			return context.Cause(s.r.active)
		}
	}
	return nil
}

// start starts one container, unless the pod is terminating, and runs its postStart hook. If the hook
// fails, PostStart kills the container. If the start fails, start checks whether the container runs
// nevertheless. If it does not and will restart, the error is errWillRestart.
func (s *starter) start(c *container) error {
	if s.r.active.Err() != nil { // the terminator may not know yet
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
		if failed == nil { // StartContainer has panicked
			failed = err
		}
		c.failed.log(s.r.ctx, failed, "Failed to start a container", "", "pod", s.r.name, "containerName", c.spec.Name)
		if started, err = s.r.findStarted(c); err != nil && s.r.active.Err() != nil {
			return context.Cause(s.r.active)
		}
		if started == "" || err != nil {
			if s.r.markEnded(c, notStarted(errors.Join(failed, err))) {
				return errWillRestart
			}
			return failed
		}
		s.r.markRunning(c, started)
	} else {
		c.failed.log(s.r.ctx, nil, "", "Started a container after earlier failures", "pod", s.r.name, "containerName", c.spec.Name)
	}
	err = s.terminator.PostStart(s.r.ctx, s.r.view(), lifecycle.Container{Name: c.spec.Name, ID: started})
	if errors.Is(err, lifecycle.ErrClosed) {
		return err
	}
	return nil // a failed hook shows in the container's state
}

// startContainer calls StartContainer within MaxStarts.
func (s *starter) startContainer(ctx context.Context, pod *v1.Pod, c *container) (id string, err error) {
	err = s.withStartSlot(ctx, func() (err error) {
		s.r.mu.Lock()
		if c.restarting {
			c.restarted++
		}
		s.r.mu.Unlock()
		returned := s.watch(ctx, "StartContainer of container "+c.spec.Name, s.r.name, createTimeout)
		defer returned()
		if id, err = s.opts.Runtime.StartContainer(ctx, pod, c.spec); err != nil {
			return err
		}
		return s.r.checkID("StartContainer", c, id)
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

// restart restarts a container after its back-off, and repeats failed starts. If the pod's termination
// begins first, the container keeps its last end, which is reported.
func (s *starter) restart(c *container) error {
	for {
		s.r.mu.Lock()
		pause := time.Until(c.restartAt)
		s.r.mu.Unlock()
		if pause > 0 {
			select {
			case <-time.After(pause):
			case <-s.r.active.Done():
			}
		}
		if s.isClosed() {
			return lifecycle.ErrClosed
		}
		err := s.start(c)
		if errors.Is(err, errWillRestart) {
			continue
		}
		if err != nil && s.r.isTerminating() {
			s.keepLastEnd(c)
		}
		return err
	}
}

// keepLastEnd reports the last end of a container that will not restart after all, and sets its state.
func (s *starter) keepLastEnd(c *container) {
	s.r.mu.Lock()
	isWaiting, id, last := c.restarting, c.id, c.last
	s.r.mu.Unlock()
	if isWaiting && s.r.reportEnd(c, id, *last) {
		s.r.markTerminated(c, *last)
	}
}
