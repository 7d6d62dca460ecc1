package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// abandonAfter is how long a hook that was cancelled may take to return before it
// counts as [HookAbandoned]. The stop does not wait for it; only the end of the
// termination does, so that its result is final.
const abandonAfter = time.Second

// hookState is how far a preStop hook has come.
type hookState int8

const (
	hookNone    hookState = iota // there is none
	hookPending                  // not begun
	hookRunning                  // its goroutine goes on with the container
	hookCut                      // cancelled, and still running; the container went on without it
	hookEnded                    // returned, skipped or abandoned
)

// preStop is the hook of one container.
type preStop struct {
	state  hookState
	began  time.Time
	cutAt  time.Time
	cancel context.CancelCauseFunc // nil unless the hook runs and can be cut by itself
	wait   *time.Timer             // nil unless the end waits until it has returned
}

// enter tells whether there is a hook to run.
func (h *preStop) enter(c *container, done bool) {
	switch handler := c.handler(); {
	case handler == nil:
	case done, kindOf(handler) == kindSleep && !c.termination.owner.sleeps:
		h.skip(c)
	default:
		h.state = hookPending
	}
}

// skip passes the hook over.
func (h *preStop) skip(c *container) {
	h.state = hookEnded
	c.result.Hook.Outcome = HookSkipped
}

// handler is the container's preStop hook, nil if it has none.
func (c *container) handler() *v1.LifecycleHandler {
	if c.spec == nil || c.spec.Lifecycle == nil {
		return nil
	}
	return c.spec.Lifecycle.PreStop
}

// beginHookLocked is the stage of the hook.
func (c *container) beginHookLocked() stage {
	c.result.Phase = PhaseHook
	c.hook.state, c.hook.began = hookRunning, time.Now()
	ctx, id := c.termination.grace, c.result.ID
	switch {
	case c.termination.owner.opts.Exits == nil || kindOf(c.handler()) != kindSleep:
		return runHook(ctx, id)
	case c.termination.owner.sleep != nil:
		return runSleep(ctx, id)
	default:
		ctx, c.hook.cancel = context.WithCancelCause(ctx)
		c.termination.goLocked(c, cutAtExit(ctx, id))
		return runHook(ctx, id)
	}
}

// cutHookLocked cancels a running hook and gives the stage that follows it, which
// does not wait until the hook has returned.
func (c *container) cutHookLocked(cause Cause) stage {
	if c.hook.state != hookRunning {
		return nil
	}
	c.hook.state, c.hook.cutAt = hookCut, time.Now()
	c.result.Hook.Cause = cause
	if c.hook.cancel != nil {
		c.hook.cancel(cause)
	}
	return c.nextLocked()
}

// runHook runs the hook, and then goes on with the container, unless that was cut
// from it.
func runHook(ctx context.Context, id string) stage {
	return func(c *container) stage { return c.hookReturned(c.callHook(ctx, id)) }
}

// callHook calls the runner; a hook that panics has failed.
func (c *container) callHook(ctx context.Context, id string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked(ctx, c.termination.pod, c.result.Name, r)
		}
	}()
	_, err = c.termination.owner.opts.Hooks.Run(ctx, id, c.termination.pod, c.spec, c.handler())
	return err
}

// panicked makes an error of a hook's panic.
func panicked(ctx context.Context, pod *v1.Pod, name string, r any) error {
	klog.FromContext(ctx).Error(nil, "Lifecycle hook panicked", "pod", klog.KObj(pod),
		"containerName", name, "panic", r, "stack", string(debug.Stack()))
	return fmt.Errorf("the hook panicked: %v", r)
}

// hookReturned settles a hook that has returned.
func (c *container) hookReturned(err error) stage {
	if c.failHook(err) {
		c.recordFailedPreStop(err)
	}
	c.termination.mu.Lock()
	defer c.termination.unlock()
	return c.hookReturnedLocked()
}

// failHook notes what a hook said, and tells whether it has failed. What a hook says
// that was cut, or that comes when its time is over, is no failure; one that says
// nothing has completed even so, unless its container has exited.
func (c *container) failHook(err error) bool {
	t := c.termination
	t.mu.Lock()
	defer t.unlock()
	switch hook := &c.result.Hook; {
	case c.hook.state == hookEnded: // abandoned: the result is final
	case errors.Is(err, ContainerExited):
		hook.Cause = ContainerExited
	case err == nil && hook.Cause != ContainerExited:
		hook.Cause = ""
	case c.hook.state == hookCut:
	case err != nil && t.spentLocked():
		hook.Cause = t.cause
	case err != nil:
		hook.Err = err
		return true
	}
	return false
}

// hookReturnedLocked gives a hook that has returned its outcome, and the stage that
// follows it.
func (c *container) hookReturnedLocked() stage {
	before := c.hook.state
	if c.hook.cancel != nil {
		c.hook.cancel(nil)
	}
	if c.hook.wait != nil {
		c.hook.wait.Stop()
	}
	if before == hookEnded {
		return nil // abandoned, and returned after all
	}
	switch {
	case c.result.Hook.Err != nil:
		c.endHookLocked(HookFailed)
	case c.result.Hook.Cause != "":
		c.endHookLocked(HookCut)
	default:
		c.endHookLocked(HookCompleted)
	}
	if before == hookCut {
		c.completeLocked()
		return nil
	}
	return c.nextLocked()
}

// endHookLocked gives the hook its outcome.
func (c *container) endHookLocked(outcome HookOutcome) {
	c.hook.state = hookEnded
	c.result.Hook.Outcome = outcome
	c.result.Hook.Took = time.Since(c.hook.began)
	kind, took := string(kindOf(c.handler())), c.result.Hook.Took
	c.termination.deferLocked(func() { c.termination.owner.opts.Metrics.HookEnded(kind, string(outcome), took) })
}

// awaitHookLocked gives a hook that was cut what is left of its time to return, and
// tells whether there is none to wait for.
func (c *container) awaitHookLocked() (settled bool) {
	if c.hook.state != hookCut {
		return true
	}
	left := abandonAfter - time.Since(c.hook.cutAt)
	if left > 0 {
		c.hook.wait = time.AfterFunc(left, c.abandonHook)
		return false
	}
	c.abandonLocked()
	return true
}

// abandonHook is called when a hook that was cut has had its time to return.
func (c *container) abandonHook() {
	c.termination.mu.Lock()
	defer c.termination.unlock()
	if c.hook.state == hookCut {
		c.abandonLocked()
		c.completeLocked()
	}
}

func (c *container) abandonLocked() {
	c.endHookLocked(HookAbandoned)
	c.termination.deferLocked(c.termination.owner.opts.Metrics.HookAbandoned)
}
