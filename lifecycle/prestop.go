package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// abandonAfter is how long a cancelled hook may take to return before it is [HookAbandoned]. StopContainer
// is called without waiting for the hook. Only the end of the termination waits, so that its result can have the
// hook's result.
const abandonAfter = time.Second

var errHookFailed = errors.New("the hook returned an error; see the result, OnHook or log verbosity 1")

// preStop is the state of the preStop hook of one run of a container. The pod's mutex guards it.
type preStop struct {
	handled     bool // this agent or a previous one has begun or skipped the hook
	kind        handlerKind
	ctx         context.Context // the hook's; its cause says why the hook was cancelled; nil: the hook was not called
	startedAt   time.Time
	cancelledAt time.Time // zero: not cancelled
	returned    bool      // the hook has returned, and its outcome is set and logged
}

// cause returns why the hook was cancelled; "" if it was not.
func (h *preStop) cause() (cause Cause) {
	_ = errors.As(context.Cause(h.ctx), &cause) // leaves "" if the hook's context has no Cause of this package
	return cause
}

// runHook runs the container's preStop hook, if it has one and beginHook does not skip it. It returns when
// the hook has returned or was cancelled; a cancelled hook may still be running then.
func (s *containerStop) runHook() {
	handler, hooks := preStopOf(s.spec), s.options.hooks
	if handler == nil || s.ctx.Err() != nil {
		return
	}
	if hooks == nil {
		hooks = s.pod.terminator.opts.Hooks
	}
	// The context tells the hook the deadline, which may move earlier, but does not end at it: it ends only by cancel or
	// Close, so that its cause says why.
	ctx, cancel := context.WithCancelCause(&graceContext{Context: s.ctx, stop: s})
	defer cancel(nil)
	if !s.beginHook(ctx, handler) {
		return
	}
	// Read the pod and the spec now: the goroutine of the hook may be so late that another attempt (begin) has changed them.
	apiPod, spec := s.apiPod, s.spec
	s.pod.spawn(agentCall{ctx: ctx, name: "the hook", apiPod: apiPod, container: spec.Name, do: func() error {
		_, err := hooks.Run(ctx, s.container.ID, apiPod, spec, handler)
		return err
	}, returned: s.hookReturned})
	if s.hook.kind == kindSleep { // other hooks may have work to do outside the exited container
		s.pod.watchExit(ctx, apiPod, s.container, cancel, s.addError)
	}
	s.awaitHook(ctx, cancel)
}

// preStopOf returns the preStop hook of a container's spec, which may be nil; nil if there is none.
func preStopOf(spec *v1.Container) *v1.LifecycleHandler {
	if spec == nil || spec.Lifecycle == nil {
		return nil
	}
	return spec.Lifecycle.PreStop
}

// awaitHook waits until the hook has returned or was cancelled. At the deadline it cancels the hook, whose context is ctx.
func (s *containerStop) awaitHook(ctx context.Context, cancel context.CancelCauseFunc) {
	s.pod.waitWhile(ctx, func() (wait bool, recheckAt time.Time) {
		mustEnd := ctx.Err() != nil || s.deadline.hasPassed()
		if mustEnd && !s.hook.returned {
			cancel(s.deadline.cause()) // no effect if the container's exit or Close has cancelled it
			s.hook.cancelledAt = time.Now()
		}
		return !mustEnd && !s.hook.returned, s.deadline.end
	})
}

// beginHook decides whether the hook runs now, and marks it as begun or skipped, so that it runs at most once per run of the
// container. It is skipped
//
//   - if this agent or a previous one has begun or skipped it before;
//   - if the run has ended: the newest list lacks it (isUnlisted), or has a later run instead. A later list may have an
//     unlisted run again; its hook may begin then;
//   - if the deadline has passed;
//   - if it is a sleep, and the feature of sleeps is off.
//
// ctx is the hook's context. beginHook locks the mutex.
func (s *containerStop) beginHook(ctx context.Context, handler *v1.LifecycleHandler) (runsNow bool) {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	hook := &s.hook
	wasHandled, isUnlisted := hook.handled, s.isUnlisted()
	hook.handled = wasHandled || !isUnlisted
	hook.kind = kindOf(handler)
	hasEnded := isUnlisted || s.replacedBy() != nil
	isSleepOff := hook.kind == kindSleep && !s.pod.terminator.isSleepEnabled(s.options.hooks)
	isSkipped := wasHandled || hasEnded || s.deadline.hasPassed() || isSleepOff
	if isSkipped {
		s.result.Hook.Outcome = cmp.Or(s.result.Hook.Outcome, HookSkipped) // an earlier attempt may have set another outcome
		return false
	}
	s.result.Phase = PhaseHook
	hook.ctx, hook.startedAt = ctx, time.Now()
	return true
}

// isSleepEnabled reports whether sleep hooks run (PodLifecycleSleepAction). If hooks is a runner of
// NewHandlerRunner, its feature gates decide, otherwise the terminator's.
func (tr *Terminator) isSleepEnabled(hooks HandlerRunner) bool {
	if builtin, _ := hooks.(*handlerRunner); builtin != nil {
		return builtin.sleepEnabled
	}
	return tr.sleepEnabled
}

// hookReturned sets the outcome of a hook that has returned with err, logs a failure, and then marks the hook as returned. The
// stop waits for that mark, so that the log line is written before the termination can end.
func (s *containerStop) hookReturned(err error) {
	if s.setHookOutcome(err) == HookFailed {
		s.logHookFailure(err)
	}
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	s.hook.returned = true
	s.pod.wake()
}

// logHookFailure logs that the hook failed with err. The error may contain secret output of the hook, so the event and the
// log omit it; only verbosity 1 shows it. An error of this package has no secrets.
func (s *containerStop) logHookFailure(err error) {
	logger := s.logger()
	switch {
	case errors.Is(err, errNoPodIP): // the kubelet's error, which does not say what is missing
		err = fmt.Errorf("%w: status.podIP, or what the option PodIP returned, is empty", err)
	case errors.Is(err, errNoCommands), errors.Is(err, errInvalidHandler), logger.V(1).Enabled(): // err is logged as it is
	default:
		err = errHookFailed
	}
	logger.Error(err, "PreStop hook failed")
}

// setHookOutcome sets and returns the outcome of a hook that has returned with err. A hook that was
// cancelled or has reached the deadline is cut if it returns an error, and completed if it does not. A
// sleep that ended because its container exited is cut even without an error.
func (s *containerStop) setHookOutcome(err error) HookOutcome {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	const noCause Cause = ""
	result := &s.result.Hook
	cause := s.hook.cause()
	if cause == noCause && s.deadline.hasPassed() { // the hook may have ended by itself at the deadline that its context has
		cause = s.deadline.cause()
	}
	switch {
	case result.Outcome == HookAbandoned: // the hook returned too late: OnHook and perhaps the caller already have this outcome
	case err == nil && cause != CauseContainerExited:
		s.endHook(HookCompleted, noCause)
	case cause != noCause:
		s.endHook(HookCut, cause)
	default:
		result.Err = err
		s.recordLocked(containerReference(s.apiPod, s.role, s.spec.Name), v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
		s.endHook(HookFailed, noCause)
	}
	return result.Outcome
}

// endHook sets the hook's outcome and cause, counts it, and calls OnHook. The caller holds the mutex.
func (s *containerStop) endHook(outcome HookOutcome, cause Cause) {
	opts, result := &s.pod.terminator.opts, &s.result.Hook
	result.Outcome, result.Cause, result.Took = outcome, cause, time.Since(s.hook.startedAt)
	opts.Metrics.HookEnded(string(s.hook.kind), string(outcome), result.Took)
	if opts.OnHook != nil {
		apiPod, c, resultNow := s.apiPod, s.container, *result // copies: begin may change them before OnHook is called
		c.PreStopDone = true
		s.notifyLocked("OnHook", func() { opts.OnHook(apiPod, c, resultNow) })
	}
}

// waitForHook waits until a cancelled hook returns, at most until abandonAfter past its cancellation. It then
// abandons the hook.
func (s *containerStop) waitForHook() {
	hasAbandoned := false
	s.pod.waitWhile(s.ctx, func() (wait bool, recheckAt time.Time) {
		isRunning := s.hook.ctx != nil && !s.hook.returned
		abandonAt := s.hook.cancelledAt.Add(abandonAfter)
		if isRunning && time.Now().Before(abandonAt) {
			return true, abandonAt
		}
		hasOutcome := s.result.Hook.Outcome != "" // set by hookReturned, which may still be logging, or by an earlier attempt
		if isRunning && !hasOutcome {
			s.endHook(HookAbandoned, s.hook.cause())
			hasAbandoned = true
		}
		return false, recheckAt
	})
	if hasAbandoned {
		s.logger().Error(nil, "PreStop hook has not returned after its cancellation, no longer waiting for it")
	}
}

// watchExit cancels the hook's context ctx when the container exits: it calls cancel with [CauseContainerExited]. It
// watches in another goroutine until ctx ends, and calls failed if the watcher panics. Without an ExitWatcher it does nothing.
func (p *podState) watchExit(ctx context.Context, apiPod *v1.Pod, c Container, cancel context.CancelCauseFunc, failed func(error)) {
	watcher := p.terminator.opts.Exits
	if watcher == nil {
		return
	}
	const name = "the exit watcher"
	p.spawn(agentCall{ctx: ctx, name: name, apiPod: apiPod, container: c.Name, do: func() error {
		returned := watchCall(ctx, name, apiPod, c.Name)
		exited := watcher.Exited(c.ID)
		returned()
		if exited == nil { // the container cannot be watched
			return nil
		}
		select {
		case <-exited:
			cancel(CauseContainerExited)
		case <-ctx.Done():
		}
		return nil
	}, returned: func(err error) {
		if err != nil { // Exited panicked
			failed(err)
		}
	}})
}
