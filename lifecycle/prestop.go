package lifecycle

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
)

// abandonAfter is how long a hook that was cancelled may take to return before it
// counts as [HookAbandoned]. The stop does not wait for it; only the end of the
// termination does, so that its result is final.
const abandonAfter = time.Second

// preStop is the hook of one container.
type preStop struct {
	ran     bool      // or it has had its chance
	running bool      // it has not returned, and is not given up
	began   time.Time // when it was called
	cutAt   time.Time // when it was cancelled
}

// handler is the container's preStop hook, nil if it has none.
func (c *container) handler() *v1.LifecycleHandler {
	if c.spec == nil || c.spec.Lifecycle == nil {
		return nil
	}
	return c.spec.Lifecycle.PreStop
}

// preStop runs the hook of a container, once in its life, and returns when the hook
// has, or is cut.
func (c *container) preStop() {
	tr := c.table.terminator
	kind := kindOf(c.handler())
	switch {
	case !c.beginHook(kind):
	case kind == kindSleep && tr.sleep != nil:
		c.hookReturned(tr.sleep.run(c.grace, c.exited(c.grace.Done()), c.handler().Sleep.Seconds))
	default:
		c.runHook(kind)
	}
}

// beginHook tells whether the hook is to be run now.
func (c *container) beginHook(kind handlerKind) bool {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	switch {
	case c.handler() == nil, c.isLeft():
		return false
	case c.hook.ran, c.deadline.isOver(), kind == kindSleep && !c.table.terminator.sleeps:
		c.hook.ran = true
		if c.result.Hook.Outcome == "" {
			c.result.Hook.Outcome = HookSkipped
		}
		return false
	}
	c.hook = preStop{ran: true, running: true, began: time.Now()}
	c.result.Phase = PhaseHook
	return true
}

// runHook runs a hook that need not heed its context in a goroutine of its own. A
// sleep is cut by the exit of its container; other hooks may have their work outside
// of it.
func (c *container) runHook(kind handlerKind) {
	hooks, id, pod, spec, handler := c.table.terminator.opts.Hooks, c.snapshot().ID, c.pod, c.spec, c.handler()
	ctx, cut := context.WithCancelCause(&graceContext{Context: c.grace, container: c})
	defer cut(nil)
	returned := make(chan struct{})
	c.spawn(ctx, "hook", func() error {
		_, err := hooks.Run(ctx, id, pod, spec, handler)
		return err
	}, func(err error) {
		c.hookReturned(err)
		close(returned)
	})
	var exited <-chan struct{}
	if kind == kindSleep {
		exited = c.exited(c.grace.Done())
	}
	select {
	case <-returned:
		c.recordFailedPreStop()
	case <-exited:
		c.cutHook(ContainerExited)
		cut(ContainerExited)
	case <-c.grace.Done():
		c.cutHook(context.Cause(c.grace))
	}
}

// cutHook says why a hook is cancelled.
func (c *container) cutHook(why error) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if c.hook.running {
		c.hook.cutAt = time.Now()
		errors.As(why, &c.result.Hook.Cause)
	}
}

// hookReturned gives a hook that has returned its outcome. What a hook says that was
// cut, or that comes when its time is over, is no failure; one that says nothing has
// completed even so, unless its container has exited.
func (c *container) hookReturned(err error) {
	c.table.mu.Lock()
	defer c.table.unlock()
	hook := &c.result.Hook
	switch {
	case !c.hook.running: // it was abandoned, and the result is final
	case errors.Is(err, ContainerExited):
		hook.Cause = ContainerExited
		c.endHookLocked(HookCut)
	case err == nil && hook.Cause != ContainerExited:
		hook.Cause = ""
		c.endHookLocked(HookCompleted)
	case hook.Cause != "":
		c.endHookLocked(HookCut)
	case c.isLeft():
		hook.Cause = AgentStopping
		c.endHookLocked(HookCut)
	case c.deadline.isOver():
		hook.Cause = c.deadline.cause()
		c.endHookLocked(HookCut)
	default:
		hook.Err = err
		c.endHookLocked(HookFailed)
	}
}

// endHookLocked gives a hook its outcome.
func (c *container) endHookLocked(outcome HookOutcome) {
	c.hook.running = false
	c.result.Hook.Outcome = outcome
	c.result.Hook.Took = time.Since(c.hook.began)
	c.table.terminator.opts.Metrics.HookEnded(string(kindOf(c.handler())), string(outcome), c.result.Hook.Took)
}

// awaitHook waits for a hook that was cut, and gives it up when it has had its time to
// return.
func (c *container) awaitHook() {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if !c.hook.running {
		return
	}
	late, stop := context.WithDeadline(context.WithoutCancel(c.life), c.hook.cutAt.Add(abandonAfter))
	defer stop()
	c.table.waitLocked(func() bool { return !c.hook.running }, late.Done())
	if c.hook.running {
		c.endHookLocked(HookAbandoned)
	}
}
