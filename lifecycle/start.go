package lifecycle

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/call"
)

// ErrTerminating is wrapped by the error of [Terminator.Start] for a pod whose termination has begun.
// It is also the cause with which that termination cancels a start in progress.
var ErrTerminating = errors.New("pod is being terminated")

var (
	errRefused          = fmt.Errorf("%w, or was terminated and not forgotten", ErrTerminating)
	errNotInSpec        = errors.New("the pod's spec has no such container")
	errNoFunction       = errors.New("the start function is nil")
	errStartNotReturned = errors.New("its start has not returned")
)

// startCall is one call of [Terminator.Start]. The pod's mutex guards it.
type startCall struct {
	name     string // of the container
	role     role
	cancel   context.CancelCauseFunc // cancels the context of the agent's start function
	returned bool
	// firstListAfter is the number of the first list that begins after the call has returned, and so has what it started. It is 0
	// before that.
	firstListAfter int
}

// Start calls start, the agent's function that starts one container, unless the pod is being
// terminated. An agent that starts all containers through it cannot start one after the termination of
// its pod has begun (k/k#125050). start runs in the caller's goroutine. Start wraps its error, and
// turns a panic into an error. The container may be running even after an error; the runtime then lists
// it.
//
// start must not wait for the termination of its own pod, which waits for start until GiveUpAfter past its
// deadline. If the pod's termination begins while start runs, start's context ends with the cause
// [ErrTerminating], which the error of Start wraps. The termination stops the container if it was
// started anyway, unless its requests name their containers ([Request].Containers). If the termination has
// already ended, Start stops the container before it returns, or returns an error that wraps [ErrClosed] if
// the terminator was closed.
//
// After the termination has begun, Start does not call start, and its error wraps ErrTerminating. The
// exception is a sidecar for which [Termination.ShouldRestart] returns true: start is called, with a
// context that ends at the deadline, or when nothing blocks the sidecar's stop any more (KEP-4438).
//
// It is an error if the pod or start is nil, or if the pod's spec lacks the container. After
// [Terminator.Close] Start does not call start, and its error wraps [ErrClosed].
func (tr *Terminator) Start(ctx context.Context, pod *v1.Pod, name string, start func(context.Context) error) error {
	if err := tr.start(ctx, pod, name, start); err != nil {
		return fmt.Errorf("failed to start container %q of pod %q: %w", name, formatPod(pod), err)
	}
	return nil
}

// start calls do, the agent's function that starts the container, unless the pod's termination forbids it. While
// do runs, the call is in podState.starts, so that a termination can cancel it. [Terminator.Start] adds the
// container's and the pod's name to the error.
func (tr *Terminator) start(ctx context.Context, pod *v1.Pod, name string, do func(context.Context) error) (err error) {
	if err := tr.checkStart(pod, name, do); err != nil {
		return err
	}
	_, role := findContainer(pod, name)
	start := &startCall{name: name, role: role}
	ctx, start.cancel = context.WithCancelCause(ctx)
	defer start.cancel(nil)
	stopWatchingClose := context.AfterFunc(tr.ctx, func() { start.cancel(CauseTerminatorClosed) })
	defer stopWatchingClose()
	state := tr.lock(pod)
	if state.termination != nil && !state.termination.canRestart(name) {
		state.unlock()
		return errRefused
	}
	state.starts[start] = struct{}{}
	state.unlock()
	// A panic of do becomes an error, and the end of ctx is logged if do ignores it. startReturned is called in any case.
	var noPreviousErr error // so that a panic is always logged
	call.GuardRepeated(ctx, "the start", noPreviousErr, logValues(pod, name), func() error {
		defer call.WatchEnd(ctx, "the start", logValues(pod, name)()...)()
		return do(ctx)
	}, func(doErr error) { err = state.startReturned(ctx, pod, start, doErr) })
	return err
}

// checkStart returns an error if an argument of Start is invalid or the terminator was closed.
func (tr *Terminator) checkStart(pod *v1.Pod, name string, do func(context.Context) error) error {
	switch err := tr.check(pod); {
	case err != nil:
		return err
	case do == nil:
		return errNoFunction
	case tr.ctx.Err() != nil:
		return ErrClosed
	}
	if _, role := findContainer(pod, name); role == roleUnknown {
		return errNotInSpec
	}
	return nil
}

// startReturned handles the return of the agent's start function with err, and returns the error of Start. A container that
// was started although the pod terminates must be stopped. A termination in progress requests a list, which has the
// container; if the termination has ended, stopLateStart stops it. If there is no termination, or its callers name the
// containers to stop, nothing is stopped.
func (p *podState) startReturned(ctx context.Context, apiPod *v1.Pod, start *startCall, err error) error {
	p.mu.Lock()
	start.returned, start.firstListAfter = true, p.lists.started+1
	switch t := p.termination; {
	case t == nil || !t.usesLists(): // no termination will list what was started, so the start must not block stops any longer
		delete(p.starts, start)
		p.unblockStops()
		p.unlock()
	case t.inProgress():
		t.requireList()
		p.unlock()
	default:
		err = errors.Join(err, p.stopLateStart(ctx, apiPod, t))
	}
	return withErrTerminating(ctx, err)
}

// stopLateStart stops a container whose start returned only after the pod's termination had ended: it begins another
// termination under the deadline of the ended one, and waits for it. After Close it cannot. It unlocks the mutex.
func (p *podState) stopLateStart(ctx context.Context, apiPod *v1.Pod, ended *Termination) error {
	leave, isOpen := p.terminator.enter("the termination", apiPod, "")
	if !isOpen {
		p.unlock()
		return ErrClosed
	}
	defer leave()
	another := p.newTermination(p.terminator.callContext(ctx), apiPod, &ended.request, ended.deadline)
	another.requireList()
	p.unlock()
	_, err := another.Wait(context.WithoutCancel(ctx))
	return err
}

// withErrTerminating returns the error of a start. If the pod's termination has cancelled ctx, the start's context, it adds
// [ErrTerminating], even if err is nil: the container was started, but is stopped.
func withErrTerminating(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrTerminating) {
		return errors.Join(ErrTerminating, err)
	}
	return err
}
