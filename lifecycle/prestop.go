package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
)

// abandonAfter is how long a hook that was cancelled may take to return before it is
// [HookAbandoned]. The stop does not wait for it; the end of the termination does, so that
// the result is final then.
const abandonAfter = time.Second

var errHookFailed = errors.New("the hook has returned an error, which is in the result, OnHook is told, and verbosity 1 shows")

// preStop is the preStop hook of a run.
type preStop struct {
	kind      handlerKind
	running   bool      // it has neither returned nor been abandoned
	startedAt time.Time // when it was called
	cutAt     time.Time // when it was cancelled
}

// runLocked runs the preStop hook of the container if it is due, and returns when the hook
// has returned or was cut.
func (h *preStop) runLocked(r *run) {
	if r.spec == nil || r.spec.Lifecycle == nil || r.spec.Lifecycle.PreStop == nil || r.isClosed() || !h.startLocked(r) {
		return
	}
	hooks := r.settings.Hooks
	if r.hooks != nil {
		hooks = r.hooks
	}
	handler := r.spec.Lifecycle.PreStop
	if builtin, _ := hooks.(*handlerRunner); builtin != nil && h.kind == kindSleep {
		h.sleepLocked(r, builtin, handler.Sleep.Seconds)
	} else {
		h.callLocked(r, hooks, handler)
	}
}

// startLocked reports whether the preStop hook has to run now, and prepares its state if so.
// A hook runs once, so the second call for a container returns false. The hook is also
// skipped if the deadline has passed, or if it is a sleep and the feature is off.
func (h *preStop) startLocked(r *run) bool {
	kind := kindOf(r.spec.Lifecycle.PreStop)
	isDue := !r.flags.hookDone && !r.deadline.isOver() && (kind != kindSleep || r.settings.isSleepEnabled(r.hooks))
	r.flags.hookDone = true
	if !isDue {
		r.result.Hook.Outcome = cmp.Or(r.result.Hook.Outcome, HookSkipped)
		return false
	}
	r.result.Phase = PhaseHook
	*h = preStop{kind: kind, running: true, startedAt: time.Now()}
	return true
}

// exited returns the channel of the container's exit, which ends a sleep. Other hooks may do
// something outside of the container.
func (h *preStop) exited(r *run) func() <-chan struct{} {
	if h.kind != kindSleep {
		return nil
	}
	return r.exits.channel
}

// callLocked runs a hook in another goroutine, and waits until it has returned or its time
// is over. Then it cancels the hook.
func (h *preStop) callLocked(r *run, hooks HandlerRunner, handler *v1.LifecycleHandler) {
	ctx, cut := context.WithCancelCause(&graceContext{Context: r.ctx, attempt: r.attempt})
	defer cut(nil)
	id, pod, spec := r.result.ID, r.pod, r.spec
	r.spawnLocked(ctx, "the hook", pod, spec.Name, func() error {
		_, err := hooks.Run(ctx, id, pod, spec, handler)
		return err
	}, func(err error) { h.returnedLocked(r, err) })
	r.waitLocked(func() bool { return !h.running || r.isClosed() }, r.deadlineTime, h.exited(r))
	hook := &r.result.Hook
	if h.running {
		h.cutAt = time.Now()
		cause := r.deadline.hookCause(h.exit(r), r.isClosed())
		errors.As(cause, &hook.Cause)
		cut(cause)
	} else if hook.Outcome == HookFailed {
		err := hook.Err
		// The error stays out of the event, and out of a log that is not detailed: it may have
		// output of the hook in it, which is not meant for everybody.
		r.logLocked(func(l klog.Logger) {
			if !l.V(1).Enabled() && !errors.Is(err, errNoCommands) {
				err = errHookFailed
			}
			l.Error(err, "PreStop hook failed")
		})
		r.recordEventLocked(containerReference(r.pod, r.role, r.result.Name), v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
	}
}

// exit returns the channel that exited gives now.
func (h *preStop) exit(r *run) <-chan struct{} {
	if exited := h.exited(r); exited != nil {
		return exited()
	}
	return nil
}

// sleepLocked runs a sleep hook of the built-in runner in the goroutine of the run. It saves
// a goroutine and a context, which would be most of the memory of a pod that sleeps. It
// keeps few variables, because the stack of the run's goroutine is the rest of that memory.
func (h *preStop) sleepLocked(r *run, runner *handlerRunner, seconds int64) {
	end := h.startedAt
	if runner.sleepEnabled && seconds > 0 {
		end = end.Add(graceperiod.Duration(seconds))
	}
	r.waitLocked(r.isClosed, func() time.Time { return times.Earlier(end, r.deadline.at()) }, r.exits.channel)
	err := runner.sleepEnded(time.Until(end), r.deadline.hookCause(r.exits.exited, r.isClosed()))
	errors.As(err, &r.result.Hook.Cause)
	h.returnedLocked(r, err)
}

// returnedLocked sets the outcome of a hook that has returned. An error from a hook that was
// cut, or that returns after the deadline, is no failure. A hook that returns no error has
// completed even if it was cut, unless its container has exited.
func (h *preStop) returnedLocked(r *run, err error) {
	hook := &r.result.Hook
	if err != nil && hook.Cause == "" {
		errors.As(r.deadline.hookCause(nil, r.isClosed()), &hook.Cause)
	}
	switch {
	case !h.running: // the hook was abandoned, and its outcome is final
	case err == nil && hook.Cause != ContainerExited:
		hook.Cause = ""
		h.endLocked(r, HookCompleted)
	case hook.Cause != "":
		h.endLocked(r, HookCut)
	default:
		hook.Err = err
		h.endLocked(r, HookFailed)
	}
}

// endLocked sets the outcome of the hook, and tells it.
func (h *preStop) endLocked(r *run, outcome HookOutcome) {
	h.running = false
	r.result.Hook.Outcome, r.result.Hook.Took = outcome, time.Since(h.startedAt)
	r.settings.Metrics.HookEnded(string(h.kind), string(outcome), r.result.Hook.Took)
	if tell := r.settings.OnHook; tell != nil {
		pod, c, result := r.pod, Container{Name: r.result.Name, ID: r.result.ID, PreStopDone: true}, r.result.Hook
		r.told.addLocked(r, func() { tell(pod, c, result) })
	}
}

// awaitLocked waits for a hook that was cut, and abandons it if it does not return in time.
func (h *preStop) awaitLocked(r *run) {
	latest := func() time.Time { return h.cutAt.Add(abandonAfter) }
	r.waitLocked(func() bool { return !h.running }, latest, nil)
	if h.running {
		h.endLocked(r, HookAbandoned)
	}
}
