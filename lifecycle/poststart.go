package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// PostStart runs the postStart hook of a container that was started, with the same runner
// as preStop hooks, and waits for it. It returns nil if there is no hook.
//
// If the hook fails, PostStart records a FailedPostStartHook event and kills the container
// as [Pod.KillContainer] does, which gives [ErrUnit] with a [PodStopper]. The error wraps
// that of the hook and that of the kill. What happens next is up to the agent's restart
// policy. A nil pod and an empty ID are errors.
//
// The context of the hook is derived from ctx. It also ends
//
//   - when the container exits during a sleep, which is no failure;
//   - when the grace period of the pod is over, but not when its termination starts
//     (KEP-4438);
//   - with the cause [AgentStopping], when the terminator is closed.
//
// If ctx has ended, the pod is being terminated or the terminator was closed, an error of the
// hook is returned, but there is no event and no kill. A hook that ignores its context holds
// up only this call.
func (p *Pod) PostStart(ctx context.Context, c Container) error {
	failed, err := p.runPostStart(ctx, c)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("postStart hook of container %q in pod %q failed: %w", c.Name, p.ref(), err)
	if !failed {
		return err
	}
	_, killErr := p.KillContainer(ctx, c, ContainerRequest{
		Reason: graceperiod.ReasonFailedPostStartHook, Message: "FailedPostStartHook",
	})
	return errors.Join(err, killErr)
}

// runPostStart runs the postStart hook in another goroutine and waits for it. failed tells
// whether the hook has failed, so that the container must be killed; the event is recorded
// then.
func (p *Pod) runPostStart(caller context.Context, named Container) (failed bool, err error) {
	s, err := p.lock()
	if err != nil {
		return false, err
	}
	pod, settings := s.pod, p.terminator.settings
	spec, role := findContainer(pod, named.Name)
	switch {
	case spec == nil || spec.Lifecycle == nil || spec.Lifecycle.PostStart == nil:
		s.mu.Unlock()
		return false, nil
	case named.ID == "":
		err = unknownError(named.Name)
	case settings.closed.Load():
		err = AgentStopping
	}
	if err != nil {
		s.mu.Unlock()
		return false, err
	}
	p.begin(s, pod)
	a, handler := s.named(pod, named), spec.Lifecycle.PostStart
	a.goroutines++
	defer a.doneAndUnlock()
	if a.exits.askLocked(context.WithoutCancel(caller)); !a.hasEnded() {
		a.flags.started = true
	}
	ctx, cut := context.WithCancelCause(caller)
	defer cut(nil)
	returned := a.spawnLocked(ctx, "hook", pod, named.Name, func() error {
		_, err := settings.Hooks.Run(ctx, named.ID, pod, spec, handler)
		return err
	}, func(hookErr error) { err = hookErr })
	var exit <-chan struct{}
	exited := func() <-chan struct{} { return exit }
	if kindOf(handler) == kindSleep {
		exited = func() <-chan struct{} { exit = a.exits.exited; return exit }
	}
	a.waitLocked(func() bool { return *returned || settings.closed.Load() || a.hasEnded() }, a.deadlineTime, exited)
	if !*returned {
		cut(a.hookCauseLocked(exit))
	}
	a.waitLocked(func() bool { return *returned }, nil, nil)
	cause := context.Cause(ctx)
	switch {
	case err == nil, errors.Is(cause, ContainerExited):
		return false, nil
	case cause != nil && !errors.Is(err, cause):
		err = errors.Join(cause, err)
	}
	failed = cause == nil && !settings.closed.Load() && s.current == nil && a.run == nil
	if failed {
		recordWarningLocked(ctx, a, containerReference(pod, role, named.Name), "FailedPostStartHook", "PostStartHook failed")
	}
	return failed, err
}
