package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// abandonAfter is how long a hook that was cancelled may take to return before it is
// [HookAbandoned]. The stop does not wait for it; the end of the termination does, so that
// the result is final then.
const abandonAfter = time.Second

// preStop is the state of a preStop hook.
type preStop struct {
	kind      handlerKind
	running   bool      // it has neither returned nor been abandoned
	startedAt time.Time // when it was called
	cutAt     time.Time // when it was cancelled
}

// preStopLocked runs the preStop hook of the container if it is due, and returns when the
// hook has returned or was cut.
func (r *run) preStopLocked() {
	if r.spec == nil || r.spec.Lifecycle == nil || r.spec.Lifecycle.PreStop == nil || r.table.closed || !r.startHookLocked() {
		return
	}
	handler, builtin := r.spec.Lifecycle.PreStop, r.table.terminator.builtin
	var exited <-chan struct{}
	if r.hook.kind == kindSleep { // other hooks may do something outside of the container
		exited = r.watchExitLocked(r.ctx)
	}
	if r.hook.kind == kindSleep && builtin != nil {
		r.sleepLocked(builtin, handler.Sleep.Seconds, exited)
	} else {
		r.runHookLocked(handler, exited)
	}
}

// startHookLocked reports whether the preStop hook has to run now, and prepares its state if
// so. A hook runs once, so the second call for a container returns false. The hook is also
// skipped if the deadline has passed, or if it is a sleep and the feature is off.
func (r *run) startHookLocked() bool {
	kind := kindOf(r.spec.Lifecycle.PreStop)
	isDue := !r.hookDone && !r.deadline.isOver() && (kind != kindSleep || r.table.terminator.sleepEnabled)
	r.hookDone = true
	if !isDue {
		r.result.Hook.Outcome = cmp.Or(r.result.Hook.Outcome, HookSkipped)
		return false
	}
	r.result.Phase = PhaseHook
	r.hook = preStop{kind: kind, running: true, startedAt: time.Now()}
	return true
}

// runHookLocked runs a hook in another goroutine, and waits until it has returned or its
// time is over. Then it cancels the hook.
func (r *run) runHookLocked(handler *v1.LifecycleHandler, exited <-chan struct{}) {
	ctx, cut := context.WithCancelCause(&graceContext{Context: r.ctx, container: r.container})
	defer cut(nil)
	hooks, id, pod, spec := r.table.terminator.opts.Hooks, r.result.ID, r.pod, r.spec
	r.spawnLocked(ctx, "hook", func() error {
		_, err := hooks.Run(ctx, id, pod, spec, handler)
		return err
	}, r.hookReturnedLocked)
	r.table.waitLocked(func() bool { return !r.hook.running || r.table.closed }, r.deadlineTime, exited)
	hook := &r.result.Hook
	if r.hook.running {
		r.hook.cutAt = time.Now()
		cause := r.hookCauseLocked(exited)
		errors.As(cause, &hook.Cause)
		cut(cause)
	} else if hook.Outcome == HookFailed {
		err := hook.Err
		r.logLocked(func(l klog.Logger) { l.V(1).Info("PreStop hook failed", "err", err) })
		// The error stays out of the event: it may have output of the hook in it, which is
		// not meant for everybody who may read events.
		r.recordEventLocked(r.reference(), v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
	}
}

// sleepLocked runs a sleep hook of the built-in runner in the goroutine of the run. It saves
// a goroutine and a context, which would be most of the memory of a pod that sleeps. It
// keeps few variables, because the stack of the run's goroutine is the rest of that memory.
func (r *run) sleepLocked(runner *handlerRunner, seconds int64, exited <-chan struct{}) {
	end := r.hook.startedAt
	if runner.sleepEnabled && seconds > 0 {
		end = end.Add(graceperiod.Duration(seconds))
	}
	r.table.waitLocked(func() bool { return r.table.closed }, func() time.Time { return earlier(end, r.deadlineTime()) }, exited)
	err := runner.sleepEnded(time.Until(end), r.hookCauseLocked(exited))
	errors.As(err, &r.result.Hook.Cause)
	r.hookReturnedLocked(err)
}

// hookCauseLocked returns the cause with which a preStop or postStart hook is cancelled
// now. exited is nil if the exit of the container does not end the hook.
func (c *container) hookCauseLocked(exited <-chan struct{}) error {
	switch {
	case isClosed(exited):
		return ContainerExited
	case c.table.closed:
		return AgentStopping
	case c.deadline.isOver():
		return c.deadline.cause()
	default:
		return ErrTerminating // the container was stopped during its postStart hook
	}
}

// hookReturnedLocked sets the outcome of a hook that has returned. An error from a hook that
// was cut, or that returns after the deadline, is no failure. A hook that returns no error
// has completed even if it was cut, unless its container has exited.
func (r *run) hookReturnedLocked(err error) {
	hook := &r.result.Hook
	if err != nil && hook.Cause == "" {
		errors.As(r.hookCauseLocked(nil), &hook.Cause)
	}
	switch {
	case !r.hook.running: // the hook was abandoned, and its outcome is final
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

// endHookLocked sets the outcome of the hook.
func (r *run) endHookLocked(outcome HookOutcome) {
	r.hook.running = false
	r.result.Hook.Outcome, r.result.Hook.Took = outcome, time.Since(r.hook.startedAt)
	r.table.terminator.opts.Metrics.HookEnded(string(r.hook.kind), string(outcome), r.result.Hook.Took)
}

// awaitHookLocked waits for a hook that was cut, and abandons it if it does not return in
// time.
func (r *run) awaitHookLocked() {
	latest := func() time.Time { return r.hook.cutAt.Add(abandonAfter) }
	r.table.waitLocked(func() bool { return !r.hook.running }, latest, nil)
	if r.hook.running {
		r.endHookLocked(HookAbandoned)
	}
}
