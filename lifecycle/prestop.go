package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/call"
)

// abandonAfter is how long a cancelled hook may take to return before it is [HookAbandoned]. StopContainer
// is called without waiting for the hook. Only the end of the termination waits, so that its result can have the
// hook's result.
const abandonAfter = time.Second

var errHookFailed = errors.New("the hook returned an error; see the result, OnHook or log verbosity 1")

// preStop is the state of the preStop hook of one run of a container. The pod's mutex guards it.
type preStop struct {
	handled     bool // this agent or a previous one has begun or skipped it
	kind        handlerKind
	startedAt   time.Time
	cancelledAt time.Time     // zero: not cancelled
	returned    chan struct{} // closed when the hook has returned and its outcome is set and logged; nil: the hook was not called
}

// runHook runs the container's preStop hook, if it has one and beginHook does not skip it. It returns when
// the hook has returned or was cancelled; a cancelled hook may still be running then.
func (s *containerStop) runHook() {
	hasHook := s.spec != nil && s.spec.Lifecycle != nil && s.spec.Lifecycle.PreStop != nil
	if !hasHook || s.ctx.Err() != nil {
		return
	}
	handler, hooks := s.spec.Lifecycle.PreStop, s.options.hooks
	if hooks == nil {
		hooks = s.pod.terminator.opts.Hooks
	}
	if !s.beginHook(handler) {
		return
	}
	// The hook sees the deadline, which may move earlier, but its context ends only by cancel, with a Cause.
	ctx, cancel := context.WithCancelCause(&graceContext{Context: s.ctx, stop: s})
	defer cancel(nil)
	apiPod, spec := s.apiPod, s.spec // copies: before Run is called, another attempt may replace them (containerStop.begin)
	s.pod.spawn(ctx, "the hook", apiPod, spec.Name, func() error {
		_, err := hooks.Run(ctx, s.container.ID, apiPod, spec, handler)
		return err
	}, s.hookReturned)
	var exited <-chan struct{}
	if s.hook.kind == kindSleep { // other hooks may have work to do outside the exited container
		exited = s.pod.watchExit(ctx, s.apiPod, s.container, s.addError)
	}
	var cause Cause
	select {
	case <-s.hook.returned:
		return
	case <-exited:
		cause = CauseContainerExited
	case <-s.expired:
		cause = s.deadlineCause()
	case <-s.ctx.Done():
		cause = CauseTerminatorClosed
	}
	s.noteHookCancelled(cause) // first: the hook may return as soon as it is cancelled
	cancel(cause)
}

// beginHook decides whether the hook runs now, and marks it as begun or skipped, so that it runs at most
// once per run of the container. It is skipped if it was begun or skipped before, also by an earlier agent, if a
// later run has replaced this one, if the deadline has passed, or if it is a sleep and the feature is off. beginHook
// locks the mutex.
func (s *containerStop) beginHook(handler *v1.LifecycleHandler) (runs bool) {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	hook := &s.hook
	wasHandled := hook.handled
	hook.handled, hook.kind = true, kindOf(handler)
	isSleepOff := hook.kind == kindSleep && !s.pod.terminator.isSleepEnabled(s.options.hooks)
	if wasHandled || s.replacedBy() != nil || s.deadline.hasPassed() || isSleepOff {
		s.result.Hook.Outcome = cmp.Or(s.result.Hook.Outcome, HookSkipped)
		return false
	}
	s.result.Phase = PhaseHook
	hook.startedAt, hook.cancelledAt, hook.returned = time.Now(), time.Time{}, make(chan struct{})
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

// deadlineCause returns the cause with which a hook is cancelled at the deadline. It locks the mutex.
func (s *containerStop) deadlineCause() Cause {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	return s.deadline.cause()
}

// noteHookCancelled notes when and why the hook is cancelled, unless it has already returned.
func (s *containerStop) noteHookCancelled(cause Cause) {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	if s.result.Hook.Outcome == "" {
		s.hook.cancelledAt, s.result.Hook.Cause = time.Now(), cause
	}
}

// hookReturned sets the outcome of a hook that has returned with err, and logs a failure. The error may
// contain secret output of the hook, so the event and the log omit it; only verbosity 1 shows it. An error of this
// package has no secrets.
func (s *containerStop) hookReturned(err error) {
	defer close(s.hook.returned) // last, so that the log line is written before the termination can end
	if s.setHookOutcome(err) != HookFailed {
		return
	}
	logger := s.logger()
	switch {
	case errors.Is(err, errNoPodIP): // the kubelet's error, which does not say what is missing
		err = fmt.Errorf("%w: status.podIP, or what the option PodIP returned, is empty", err)
	case errors.Is(err, errNoCommands), errors.Is(err, errInvalidHandler), logger.V(1).Enabled():
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
	hook := &s.result.Hook
	switch {
	case hook.Cause != "": // it was cancelled
	case s.deadline.hasPassed(): // it may have ended because its context has the deadline
		hook.Cause = s.deadline.cause()
	case s.ctx.Err() != nil:
		hook.Cause = CauseTerminatorClosed
	}
	switch {
	case hook.Outcome == HookAbandoned: // the hook returned too late: OnHook and perhaps the caller already have this outcome
	case err == nil && hook.Cause != CauseContainerExited:
		hook.Cause = ""
		s.endHook(HookCompleted)
	case hook.Cause != "":
		s.endHook(HookCut)
	default:
		hook.Err = err
		s.recordLocked(containerReference(s.apiPod, s.role, s.spec.Name), v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
		s.endHook(HookFailed)
	}
	return hook.Outcome
}

// endHook sets the hook's outcome, counts it, and calls OnHook. The caller holds the mutex.
func (s *containerStop) endHook(outcome HookOutcome) {
	opts := &s.pod.terminator.opts
	s.result.Hook.Outcome, s.result.Hook.Took = outcome, time.Since(s.hook.startedAt)
	opts.Metrics.HookEnded(string(s.hook.kind), string(outcome), s.result.Hook.Took)
	if opts.OnHook != nil {
		apiPod, c, result := s.apiPod, s.container, s.result.Hook // begin may change them before OnHook is called
		c.PreStopDone = true
		s.notifyLocked("OnHook", func() { opts.OnHook(apiPod, c, result) })
	}
}

// waitForHook waits until a cancelled hook returns, at most until abandonAfter past its cancellation. It then
// abandons the hook.
func (s *containerStop) waitForHook() {
	if s.hook.returned == nil { // no hook was run
		return
	}
	if remaining := time.Until(s.hook.cancelledAt.Add(abandonAfter)); remaining > 0 {
		timer := time.NewTimer(remaining)
		defer timer.Stop()
		select {
		case <-s.hook.returned:
		case <-timer.C:
		}
	}
	if s.abandonHook() {
		s.logger().Error(nil, "PreStop hook has not returned after its cancellation, no longer waiting for it")
	}
}

// abandonHook makes the outcome of a cancelled hook HookAbandoned, unless the hook has returned, and
// reports whether it did. It locks the mutex.
func (s *containerStop) abandonHook() (abandoned bool) {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	if s.result.Hook.Outcome != "" {
		return false
	}
	s.endHook(HookAbandoned)
	return true
}

// watchExit returns a channel that is closed when the container exits. Without an ExitWatcher it returns nil, a channel
// that blocks for ever. It watches in another goroutine until ctx ends, and calls failed if the watcher panics.
func (p *podState) watchExit(ctx context.Context, apiPod *v1.Pod, c Container, failed func(error)) <-chan struct{} {
	watcher := p.terminator.opts.Exits
	if watcher == nil {
		return nil
	}
	exited := make(chan struct{})
	p.spawn(ctx, "the exit watcher", apiPod, c.Name, func() error {
		returned := call.Watch(ctx, "the exit watcher", 0, logValues(apiPod, c.Name)()...)
		watched := watcher.Exited(c.ID)
		returned()
		if watched == nil { // the container cannot be watched
			return nil
		}
		select {
		case <-watched:
			close(exited)
		case <-ctx.Done():
		}
		return nil
	}, func(err error) {
		if err != nil {
			failed(err)
		}
	})
	return exited
}
