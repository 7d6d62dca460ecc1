package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/call"
)

// PostStart runs the postStart hook of a started container and waits for it, with the same
// [HandlerRunner] as preStop hooks. It returns nil if there is no hook.
//
// If the hook fails, PostStart records a FailedPostStartHook event and kills the container as
// [Terminator.KillContainer] does, which a [PodStopper] does not support. The error joins the errors of
// the hook and of the kill. The agent's restart policy decides what happens next. It is an error if the
// pod is nil, if its spec lacks the container, or if c.ID is empty or has a prefix. After
// [Terminator.Close] the hook does not run, and the error wraps [ErrClosed].
//
// The hook's context derives from ctx. It also ends
//
//   - when the container exits during a sleep, which is not a failure;
//   - when a stop of the container has ended or has used up its grace period, but not when the pod's
//     termination begins (KEP-4438);
//   - with the cause [CauseTerminatorClosed], when the terminator is closed.
//
// PostStart returns the hook's error without an event or a kill if, by then,
//
//   - ctx has ended,
//   - a stop of the container or a termination of its pod has begun, or
//   - the terminator was closed.
//
// A hook that ignores its context blocks only this call.
func (tr *Terminator) PostStart(ctx context.Context, pod *v1.Pod, c Container) error {
	failed, err := tr.postStart(ctx, pod, c)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("postStart hook of container %q in pod %q failed: %w", c.Name, formatPod(pod), err)
	if !failed {
		return err
	}
	_, killErr := tr.KillContainer(ctx, pod, c, ContainerRequest{
		Reason: graceperiod.ReasonFailedPostStartHook, Message: "FailedPostStartHook",
	})
	return errors.Join(err, killErr)
}

// postStart runs the hook, and records the event if the hook failed. failed says that the hook has failed, so that
// the caller must kill the container. It is false for an error that came from a cancellation or from invalid
// arguments.
func (tr *Terminator) postStart(caller context.Context, pod *v1.Pod, c Container) (failed bool, err error) {
	if err := tr.checkPostStart(pod, c); err != nil {
		return false, err
	}
	spec, role := findContainer(pod, c.Name)
	if spec.Lifecycle == nil || spec.Lifecycle.PostStart == nil {
		return false, nil
	}
	leave, isOpen := tr.enter("the hook", pod, c.Name)
	if !isOpen {
		return false, ErrClosed
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(caller)
	defer cancel(nil)
	stopWatchingClose := context.AfterFunc(tr.ctx, func() { cancel(CauseTerminatorClosed) })
	defer stopWatchingClose()
	state := tr.lock(pod)
	state.readers++ // keeps the pod's stops, which are read below
	state.dropStopOfEarlierRun(c)
	state.unlock()
	err = state.runPostStart(ctx, cancel, pod, c, spec)
	cause := context.Cause(ctx) // nil: nobody has cancelled the hook
	state.mu.Lock()
	state.readers--
	isStopping := state.termination != nil || state.stopOf(c) != nil
	state.unlock()
	wasCancelled := cause != nil || tr.ctx.Err() != nil
	switch {
	case err == nil, errors.Is(cause, CauseContainerExited):
		return false, nil
	case wasCancelled || isStopping: // the error may come from that
		return false, withCause(err, cause)
	}
	state.recordWarning(ctx, pod, c.Name, containerReference(pod, role, c.Name), "FailedPostStartHook", "PostStartHook failed")
	return true, err
}

// withCause returns the error of a cancelled hook with the cause of the cancellation, which the error may lack; nil: no cause.
func withCause(err, cause error) error {
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return errors.Join(cause, err)
}

// checkPostStart returns an error if an argument of PostStart is invalid.
func (tr *Terminator) checkPostStart(pod *v1.Pod, c Container) error {
	if err := tr.check(pod); err != nil {
		return err
	}
	if _, role := findContainer(pod, c.Name); role == roleUnknown {
		return errNotInSpec
	}
	return c.check()
}

// runPostStart runs the postStart hook in another goroutine, and returns the hook's error once the hook has returned. It cancels
// ctx, the hook's context, if the container exits during a sleep, or if a stop of the container has ended or has used up its
// grace period.
func (p *podState) runPostStart(ctx context.Context, cancel context.CancelCauseFunc, pod *v1.Pod, c Container, spec *v1.Container) (err error) {
	handler, hasReturned := spec.Lifecycle.PostStart, false
	p.spawn(agentCall{ctx: ctx, name: "the hook", apiPod: pod, container: c.Name, do: func() error {
		defer call.WatchEnd(ctx, "the postStart hook", logValues(pod, c.Name)()...)()
		_, err := p.terminator.opts.Hooks.Run(ctx, c.ID, pod, spec, handler)
		return err
	}, returned: func(hookErr error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		err, hasReturned = hookErr, true
		p.wake()
	}})
	if kindOf(handler) == kindSleep { // other hooks may have work to do outside the exited container
		ignorePanic := func(error) {} // it has been logged
		p.watchExit(ctx, pod, c, cancel, ignorePanic)
	}
	p.waitWhile(ctx, func() (wait bool, recheckAt time.Time) {
		s := p.stopOf(c)
		if hasReturned || s == nil {
			return !hasReturned, recheckAt
		}
		switch {
		case !s.inProgress:
			cancel(ErrTerminating)
		case s.deadline.hasPassed():
			cancel(s.deadline.cause())
		}
		return true, s.deadline.end
	})
	return err
}
