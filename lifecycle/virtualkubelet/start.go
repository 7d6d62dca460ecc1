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

// errInitFailed ends a pod's start: the containers after the failed init container are never started.
var errInitFailed = errors.New("an init container has failed")

// starter starts one pod once the earlier pods with its name have ended.
type starter struct {
	*agent

	record   *record
	earlier  []*record // the earlier pods with the same name
	wasBegun bool      // a previous agent has admitted the pod and begun to start it
}

// run admits the pod and starts its containers. If the start fails for good, or all regular containers have ended
// already, it terminates what still runs, such as sidecars, unless a termination has begun.
func (s *starter) run() {
	if s.poller.awaitFirstList(s.record.ctx) != nil {
		return
	}
	if !s.wasAdmitted() && !s.admit() {
		return
	}
	err := s.startAll()
	s.record.mu.Lock()
	s.record.ending.starting = false
	hasFailedOrCompleted := err != nil || !s.record.body.incomplete()
	mustTerminate := !s.record.ending.terminating && hasFailedOrCompleted
	s.record.mu.Unlock()
	if err != nil {
		klog.FromContext(s.record.ctx).V(1).Info("Stopped starting a pod", "pod", s.record.name, "err", err)
	}
	s.record.ender.finalizeIfEnded()
	if mustTerminate && !s.isClosed() {
		s.record.ender.terminateRemaining()
	}
}

// wasAdmitted reports whether a previous agent has admitted the pod, so that Admit is not asked again.
func (s *starter) wasAdmitted() bool {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	whole := s.record.whole()
	return s.wasBegun || whole != nil && whole.isKnown()
}

// startAll starts the containers in the order of the spec. A plain init container must succeed before the next
// container starts. The error ends the pod: a container will not start, or the termination has begun.
func (s *starter) startAll() error {
	if err := s.awaitEarlier(); err != nil {
		return err
	}
	if whole := s.record.whole(); whole != nil {
		return whole.create()
	}
	for _, c := range s.record.containers.all {
		var err error
		if !s.isStarted(c) {
			err = s.start(c)
		}
		switch {
		case errors.Is(err, errWillRestart) && !c.init: // restart it in the background, because the others need not wait
			s.spawn(s.record.name, func() {
				_ = s.restart(c) // an error shows in the container's state
				s.record.endIfDone()
			})
			continue
		case errors.Is(err, errWillRestart): // an init container: those after it wait for its restart
			err = s.restart(c)
		}
		if err != nil {
			return err
		}
		if !c.isPlainInit() { // the next container need not wait for this one
			continue
		}
		if err := s.awaitInit(c); err != nil {
			return err
		}
	}
	return nil
}

// isStarted reports whether this agent or a previous one has tried to start the container.
func (s *starter) isStarted(c *container) bool {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	return c.state != v1.ContainerState{}
}

// awaitEarlier waits until the earlier pods with the same name have ended and, with a PodRuntime, have
// been deleted.
func (s *starter) awaitEarlier() error {
	for _, other := range s.earlier {
		select {
		case <-other.ender.nameFree:
		case <-s.record.active.Done():
			return context.Cause(s.record.active)
		}
	}
	return nil
}

// start starts one container and runs its postStart hook. If the hook fails, the terminator's PostStart kills the
// container; that is no error here. A StartContainer that fails may have started the container nevertheless, so start
// then lists the containers. The error is
//
//   - errWillRestart if the container does not run, and the restart policy repeats the start;
//   - that of StartContainer if the container does not run, and will not;
//   - ErrTerminating or ErrClosed if the pod may start nothing any more.
func (s *starter) start(c *container) error {
	if s.record.active.Err() != nil { // the terminator, which would refuse the start, may not know of the termination yet
		return context.Cause(s.record.active)
	}
	var id string
	var failed error // from StartContainer
	pod := s.record.podWithStatus()
	err := s.terminator.Start(s.record.ctx, pod, c.spec.Name, func(ctx context.Context) error {
		id, failed = s.startContainer(ctx, pod, c)
		return failed
	})
	if err != nil {
		if s.record.active.Err() != nil {
			return context.Cause(s.record.active)
		}
		if failed == nil { // StartContainer has panicked
			failed = err
		}
		c.failed.log(s.record.ctx, failed, "Failed to start a container", "", "pod", s.record.name, "containerName", c.spec.Name)
		if id, err = s.record.findStarted(c); err != nil && s.record.active.Err() != nil {
			return context.Cause(s.record.active)
		}
		if id == "" || err != nil { // it does not run
			if s.record.markEnded(c, notStarted(errors.Join(failed, err))) {
				return errWillRestart
			}
			return failed
		}
		s.record.markRunning(c, id)
	} else {
		c.failed.log(s.record.ctx, nil, "", "Started a container after earlier failures", "pod", s.record.name, "containerName", c.spec.Name)
	}
	err = s.terminator.PostStart(s.record.ctx, s.record.podWithStatus(), lifecycle.Container{Name: c.spec.Name, ID: id})
	if errors.Is(err, lifecycle.ErrClosed) {
		return err
	}
	return nil // a failed hook shows in the container's state
}

// startContainer calls StartContainer when maxStarts allows it, and records that the container runs.
func (s *starter) startContainer(ctx context.Context, pod *v1.Pod, c *container) (id string, err error) {
	err = s.withStartSlot(ctx, func() (err error) {
		s.record.mu.Lock()
		if c.restarting { // an attempt counts as a restart, even if it fails
			c.restarted++
		}
		s.record.mu.Unlock()
		returned := s.watchCall(ctx, "StartContainer of container "+c.spec.Name, s.record.name, createTimeout)
		defer returned()
		if id, err = s.opts.Runtime.StartContainer(ctx, pod, c.spec); err != nil {
			return err
		}
		return s.record.checkID("StartContainer", c, id)
	})
	if err == nil {
		s.record.markRunning(c, id)
	}
	return id, err
}

// awaitInit waits until a plain init container has ended for good. The error is errInitFailed unless its exit code
// is 0.
func (s *starter) awaitInit(c *container) error {
	select {
	case <-c.exited:
	case <-s.record.ctx.Done():
		return context.Cause(s.record.ctx)
	}
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	if code := c.state.Terminated.ExitCode; code != 0 {
		return fmt.Errorf("%w: %s with exit code %d", errInitFailed, c.spec.Name, code)
	}
	return nil
}

// restart starts a container again after its back-off, and repeats that until the start succeeds or may not be
// repeated. If the pod's termination begins first, the container does not restart and its last end becomes final.
func (s *starter) restart(c *container) error {
	for {
		s.record.mu.Lock()
		pause := time.Until(c.restartAt)
		s.record.mu.Unlock()
		if pause > 0 {
			select {
			case <-time.After(pause):
			case <-s.record.active.Done():
			}
		}
		if s.isClosed() {
			return lifecycle.ErrClosed
		}
		err := s.start(c)
		if errors.Is(err, errWillRestart) {
			continue
		}
		if err != nil && s.record.isTerminating() {
			s.keepLastEnd(c)
		}
		return err
	}
}

// keepLastEnd makes the end of the last run final for a container that was waiting for a restart and will not get
// one.
func (s *starter) keepLastEnd(c *container) {
	s.record.mu.Lock()
	isWaiting, last := c.restarting, c.last
	s.record.mu.Unlock()
	if isWaiting {
		s.record.markTerminated(c, *last)
	}
}
