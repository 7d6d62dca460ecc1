package lifecycle

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// PostStart runs the postStart hook of a container that has been started, in the
// caller's goroutine, through the same runner as preStop hooks. It gives nil if there
// is none. If the hook fails, a FailedPostStartHook event is recorded, the container
// is killed as [Terminator.KillContainer] does, and the error wraps what the hook said
// and what went wrong in the kill; the agent's restart policy decides what comes next.
//
// The hook's context is the caller's. It ends as well when the container exits during
// a sleep, which is no failure; when the grace of its pod is over, though not when
// the termination begins (KEP-4438); and, with the cause [AgentStopping], when the
// terminator is closed. The hook of a pod that is being terminated, or of an agent that
// stops, has not failed: there is an error, but neither event nor kill. A hook that
// ignores its context holds up the caller and nobody else.
func (tr *Terminator) PostStart(ctx context.Context, pod *v1.Pod, c Container) error {
	if pod == nil {
		return fmt.Errorf("failed to run the postStart hook of container %q: %w", c.Name, errNoPod)
	}
	spec, _ := findContainer(pod, c.Name)
	if spec == nil || spec.Lifecycle == nil || spec.Lifecycle.PostStart == nil {
		return nil
	}
	failed, err := tr.runPostStart(ctx, pod, c, spec)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("postStart hook of container %q in pod %q failed: %w", c.Name, podText(pod), err)
	if !failed {
		return err
	}
	tr.record(ctx, containerReference(pod, c.Name), pod, c.Name, reasonFailedPostStart, messageFailedPostStart)
	_, killErr := tr.KillContainer(ctx, pod, c, ContainerRequest{
		Reason: graceperiod.ReasonFailedPostStartHook, Message: reasonFailedPostStart,
	})
	return errors.Join(err, killErr)
}

// runPostStart runs the hook beside the caller, and tells whether an error means that
// it has failed.
func (tr *Terminator) runPostStart(ctx context.Context, pod *v1.Pod, named Container, spec *v1.Container) (failed bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := tr.lock(pod)
	if p.closed {
		p.mu.Unlock()
		return false, AgentStopping
	}
	c := p.nameLocked(pod, named)
	c.guests++
	defer p.mu.Unlock()
	returned := false
	c.spawnLocked(ctx, "hook", func() error {
		_, err := tr.opts.Hooks.Run(ctx, named.ID, pod, spec, spec.Lifecycle.PostStart)
		return err
	}, func(said error) {
		p.mu.Lock()
		defer p.unlock()
		returned, err = true, said
	})
	ended := func() bool {
		if p.closed {
			cancel(AgentStopping)
		} else if c.grace != nil && c.grace.Err() != nil {
			cancel(context.Cause(c.grace))
		}
		return returned
	}
	if kindOf(spec.Lifecycle.PostStart) == kindSleep {
		c.askExitLocked(ctx)
		p.waitLocked(func() bool { return ended() || c.exit.asked == 0 }, nil)
		p.waitLocked(ended, c.exit.exited)
	}
	if !returned && isClosed(c.exit.exited) {
		cancel(ContainerExited)
	}
	p.waitLocked(ended, nil)
	c.guests--
	c.obsolete = c.obsolete || c.isIdle()
	p.tidyLocked()
	cause := context.Cause(ctx)
	switch {
	case err == nil, errors.Is(cause, ContainerExited):
		return false, nil
	case cause != nil && !errors.Is(err, cause):
		err = errors.Join(cause, err)
	}
	return !p.closed && p.current == nil && !c.ending, err
}

// isClosed tells whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
