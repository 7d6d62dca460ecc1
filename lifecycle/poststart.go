package lifecycle

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// PostStart runs the postStart hook of a container that was started, with the same runner
// as preStop hooks, and waits for it. It returns nil if there is no hook.
//
// If the hook fails, PostStart records a FailedPostStartHook event and kills the container
// as [Terminator.KillContainer] does. The error wraps that of the hook and that of the kill.
// What happens next is up to the agent's restart policy. A nil pod and an empty ID are
// errors.
//
// The context of the hook is derived from ctx. It also ends
//
//   - when the container exits during a sleep, which is no failure;
//   - when the grace period of the pod is over, but not when its termination starts
//     (KEP-4438);
//   - with the cause [AgentStopping], when the terminator is closed.
//
// If the pod is being terminated or the terminator was closed, an error of the hook is
// returned, but there is no event and no kill. A hook that ignores its context holds up
// only this call.
func (tr *Terminator) PostStart(ctx context.Context, pod *v1.Pod, c Container) error {
	if pod == nil {
		return fmt.Errorf("failed to run the postStart hook of container %q: %w", c.Name, errNoPod)
	}
	spec, role := findContainer(pod, c.Name)
	if spec == nil || spec.Lifecycle == nil || spec.Lifecycle.PostStart == nil {
		return nil
	}
	failed, err := false, unknownContainer(nil, c.Name).result.Err
	if c.ID != "" {
		failed, err = tr.runPostStart(ctx, pod, c, spec, role)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("postStart hook of container %q in pod %q failed: %w", c.Name, podText(pod), err)
	if !failed {
		return err
	}
	_, killErr := tr.KillContainer(ctx, pod, c, ContainerRequest{
		Reason: graceperiod.ReasonFailedPostStartHook, Message: "FailedPostStartHook",
	})
	return errors.Join(err, killErr)
}

// runPostStart runs the postStart hook in another goroutine and waits for it. failed tells
// whether the hook has failed, so that the container must be killed; the event is recorded
// then.
func (tr *Terminator) runPostStart(ctx context.Context, pod *v1.Pod, named Container, spec *v1.Container, role role) (failed bool, err error) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	p := tr.lock(podKey(pod), true)
	if p.closed {
		p.unlock()
		return false, AgentStopping
	}
	c, handler := p.findOrAddLocked(pod, named), spec.Lifecycle.PostStart
	c.goroutines++
	defer c.doneAndUnlock()
	returned := c.spawnLocked(ctx, "hook", func() error {
		_, err := tr.opts.Hooks.Run(ctx, named.ID, pod, spec, handler)
		return err
	}, func(hookErr error) {
		err = hookErr
		c.obsolete = c.obsolete || c.starting.cancel == nil && c.run == nil && !c.started && !c.hookDone && c.result.Outcome == ""
	})
	var exited <-chan struct{}
	if kindOf(handler) == kindSleep {
		exited = c.watchExitLocked(ctx)
	}
	p.waitLocked(func() bool { return *returned || p.closed || c.hasEnded() }, c.deadlineTime, exited)
	if !*returned {
		cut(c.hookCauseLocked(exited))
	}
	p.waitLocked(func() bool { return *returned }, nil, nil)
	cause := context.Cause(ctx)
	switch {
	case err == nil, errors.Is(cause, ContainerExited):
		return false, nil
	case cause != nil && !errors.Is(err, cause):
		err = errors.Join(cause, err)
	}
	failed = !p.closed && p.current == nil && c.run == nil
	if failed {
		c.recordWarningLocked(ctx, containerReference(pod, role, named.Name), "FailedPostStartHook", "PostStartHook failed")
	}
	return failed, err
}
