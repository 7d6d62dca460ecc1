package lifecycle

import (
	"context"
	"errors"
)

// postStart is one call of [Pod.PostStart].
type postStart struct {
	caller    context.Context
	container Container
}

// run runs the postStart hook in another goroutine and waits for it. failed tells whether the
// hook has failed, so that the container must be killed; the event is recorded then.
func (h *postStart) run(handle *Pod) (failed bool, err error) {
	l := handle.life
	pod, err := l.lock(handle, nil)
	if err != nil {
		return false, err
	}
	settings, named := l.settings(), h.container
	spec, role := findContainer(pod, named.Name)
	switch {
	case spec == nil || spec.Lifecycle == nil || spec.Lifecycle.PostStart == nil:
		l.mu.Unlock()
		return false, nil
	case named.ID == "":
		err = unknownError(named.Name)
	case settings.isClosed():
		err = AgentStopping
	}
	if err != nil {
		l.mu.Unlock()
		return false, err
	}
	l.begin()
	before, handler := l.named(context.WithoutCancel(h.caller), pod, named), spec.Lifecycle.PostStart
	a := before
	switch {
	case before.isOver(): // its ID is used again, or this is late; the hook of an ID runs once all the same
		a = l.add(pod, named.Name, named.ID)
		a.flags.hookDone, a.flags.announced = true, true
	case l.live.isStartedAgain(before): // it is the one that is being started
		a = l.add(pod, named.Name, named.ID)
		a.flags.hookDone = before.flags.hookDone
		l.live.end(before)
	}
	a.goroutines++
	defer a.doneAndUnlock()
	if a.exits.askLocked(context.WithoutCancel(h.caller), a, false); !a.hasEnded() {
		a.flags.started = true
	}
	ctx, cut := context.WithCancelCause(h.caller)
	defer cut(nil)
	returned := a.spawnLocked(ctx, "the hook", pod, named.Name, func() error {
		_, err := settings.Hooks.Run(ctx, named.ID, pod, spec, handler)
		return err
	}, func(hookErr error) { err = hookErr })
	var exit <-chan struct{}
	exited := func() <-chan struct{} { return exit }
	if kindOf(handler) == kindSleep {
		exited = func() <-chan struct{} { exit = a.exits.channel(); return exit }
	}
	a.waitLocked(func() bool { return *returned || settings.isClosed() || a.hasEnded() }, a.deadlineTime, exited)
	if !*returned {
		cut(a.deadline.hookCause(exit, settings.isClosed()))
	}
	a.waitLocked(func() bool { return *returned }, nil, nil)
	cause := context.Cause(ctx)
	switch {
	case err == nil, errors.Is(cause, ContainerExited):
		return false, nil
	case cause != nil && !errors.Is(err, cause):
		err = errors.Join(cause, err)
	}
	failed = cause == nil && !settings.isClosed() && l.current == nil && a.run == nil
	if failed {
		recordWarningLocked(ctx, a, containerReference(pod, role, named.Name), "FailedPostStartHook", "PostStartHook failed")
	}
	return failed, err
}
