package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// abandonAfter is how long a hook that was cancelled may take to return before it
// counts as [HookAbandoned]. The stop does not wait for it; only the end of the
// termination does, so that its result is final.
const abandonAfter = time.Second

// preStop is a preStop hook that is under way, or was.
type preStop struct {
	kind    handlerKind
	running bool      // it has not returned, and is not given up
	began   time.Time // when it was called
	cutAt   time.Time // when it was cancelled
}

// preStopLocked runs the hook of a container, once in its life, and returns when the hook
// has, or is cut.
func (r *run) preStopLocked() {
	if r.spec == nil || r.spec.Lifecycle == nil || r.spec.Lifecycle.PreStop == nil || r.table.closed || !r.beginHookLocked() {
		return
	}
	handler, own := r.spec.Lifecycle.PreStop, r.table.terminator.own
	var exited <-chan struct{}
	if r.hook.kind == kindSleep { // other hooks may have their work outside of the container
		exited = r.askExitLocked(r.ctx)
	}
	if r.hook.kind == kindSleep && own != nil {
		r.sleepLocked(own, handler.Sleep.Seconds, exited)
	} else {
		r.runHookLocked(handler, exited)
	}
}

// beginHookLocked tells whether the hook is to be run now.
func (r *run) beginHookLocked() bool {
	kind := kindOf(r.spec.Lifecycle.PreStop)
	isDue := !r.hooked && !r.deadline.isOver() && (kind != kindSleep || r.table.terminator.sleeps)
	r.hooked = true
	if !isDue {
		r.result.Hook.Outcome = cmp.Or(r.result.Hook.Outcome, HookSkipped)
		return false
	}
	r.result.Phase = PhaseHook
	r.hook = preStop{kind: kind, running: true, began: time.Now()}
	return true
}

// runHookLocked runs a hook in a goroutine of its own, until it has returned, or is cut.
func (r *run) runHookLocked(handler *v1.LifecycleHandler, exited <-chan struct{}) {
	ctx, cut := context.WithCancelCause(&graceContext{Context: r.ctx, container: r.container})
	defer cut(nil)
	hooks, id, pod, spec := r.table.terminator.opts.Hooks, r.result.ID, r.pod, r.spec
	r.spawnLocked(ctx, "hook", func() error {
		_, err := hooks.Run(ctx, id, pod, spec, handler)
		return err
	}, r.hookReturnedLocked)
	r.table.waitLocked(func() bool { return !r.hook.running || r.table.closed }, r.endOfGrace, exited)
	hook := &r.result.Hook
	if r.hook.running {
		r.hook.cutAt = time.Now()
		why := r.whyOverLocked(exited)
		errors.As(why, &hook.Cause)
		cut(why)
	} else if hook.Outcome == HookFailed {
		err := hook.Err
		r.logLocked(func(l klog.Logger) { l.V(1).Info("PreStop hook failed", "err", err) })
		// What it said stays out of the event, which may be read by more people than a
		// hook's output is meant for.
		r.recordLocked(r.reference(), v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
	}
}

// sleepLocked is a sleep of [NewHandlerRunner], which needs neither a goroutine nor a
// context of its own: what a pod that sleeps takes in memory is, for the most part, those,
// and the stack of its goroutine, which is why little is on it here.
func (r *run) sleepLocked(runner *handlerRunner, seconds int64, exited <-chan struct{}) {
	end := r.hook.began
	if runner.sleeps && seconds > 0 {
		end = end.Add(graceperiod.Duration(seconds))
	}
	r.table.waitLocked(func() bool { return r.table.closed }, func() time.Time { return earlier(end, r.endOfGrace()) }, exited)
	err := runner.sleepEnded(time.Until(end), r.whyOverLocked(exited))
	errors.As(err, &r.result.Hook.Cause)
	r.hookReturnedLocked(err)
}

// whyOverLocked is why the hook of a container is ended that has not returned: preStop,
// or postStart. exited is nil if its exit does not end the hook.
func (c *container) whyOverLocked(exited <-chan struct{}) error {
	switch {
	case isClosed(exited):
		return ContainerExited
	case c.table.closed:
		return AgentStopping
	case c.deadline.isOver():
		return c.deadline.cause()
	default:
		return ErrTerminating // it was stopped
	}
}

// hookReturnedLocked gives a hook that has returned its outcome. What a hook says that
// was cut, or that comes when its time is over, is no failure; one that says nothing has
// completed even so, unless its container has exited.
func (r *run) hookReturnedLocked(err error) {
	hook := &r.result.Hook
	if err != nil && hook.Cause == "" {
		errors.As(r.whyOverLocked(nil), &hook.Cause)
	}
	switch {
	case !r.hook.running: // it was abandoned, and the result is final
	case err == nil && hook.Cause != ContainerExited:
		hook.Cause = ""
		r.endHookLocked(HookCompleted)
	case hook.Cause != "":
		r.endHookLocked(HookCut)
	default:
		hook.Err = err
		r.endHookLocked(HookFailed)
	}
}

// endHookLocked gives a hook its outcome.
func (r *run) endHookLocked(outcome HookOutcome) {
	r.hook.running = false
	r.result.Hook.Outcome, r.result.Hook.Took = outcome, time.Since(r.hook.began)
	r.table.terminator.opts.Metrics.HookEnded(string(r.hook.kind), string(outcome), r.result.Hook.Took)
}

// awaitHookLocked waits for a hook that was cut, and gives it up when it has had its
// time to return.
func (r *run) awaitHookLocked() {
	late := func() time.Time { return r.hook.cutAt.Add(abandonAfter) }
	r.table.waitLocked(func() bool { return !r.hook.running }, late, nil)
	if r.hook.running {
		r.endHookLocked(HookAbandoned)
	}
}

// PostStart runs the postStart hook of a container that has been started, in the
// caller's goroutine, through the same runner as preStop hooks. It gives nil if there
// is none. If the hook fails, a FailedPostStartHook event is recorded, the container
// is killed as [Terminator.KillContainer] does, and the error wraps what the hook said
// and what went wrong in the kill; the agent's restart policy decides what comes next.
// A nil pod and an empty ID are errors.
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

// runPostStart runs the hook beside the caller, and tells whether an error means that
// it has failed, of which there is an event then.
func (tr *Terminator) runPostStart(ctx context.Context, pod *v1.Pod, named Container, spec *v1.Container, role role) (failed bool, err error) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	p := tr.lock(podKey(pod), true)
	if p.closed {
		p.unlock()
		return false, AgentStopping
	}
	c, handler := p.nameLocked(pod, named), spec.Lifecycle.PostStart
	c.calls++
	defer c.rest()
	returned := c.spawnLocked(ctx, "hook", func() error {
		_, err := tr.opts.Hooks.Run(ctx, named.ID, pod, spec, handler)
		return err
	}, func(said error) {
		err = said
		c.obsolete = c.obsolete || c.cancelStart == nil && c.run == nil && !c.started && !c.hooked && c.result.Outcome == ""
	})
	var exited <-chan struct{}
	if kindOf(handler) == kindSleep {
		exited = c.askExitLocked(ctx)
	}
	p.waitLocked(func() bool { return *returned || p.closed || c.hasEnded() }, c.endOfGrace, exited)
	if !*returned {
		cut(c.whyOverLocked(exited))
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
		c.warnLocked(ctx, containerReference(pod, role, named.Name), "FailedPostStartHook", "PostStartHook failed")
	}
	return failed, err
}
