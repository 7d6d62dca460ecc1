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
	name      string // of the container
	role      role
	cancel    context.CancelCauseFunc // cancels the context of the agent's start function
	returned  bool
	firstList int // set when it returns: the number of the next list to begin, the first one that has what it started
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
	switch err := tr.check(pod); {
	case err != nil:
		return err
	case do == nil:
		return errNoFunction
	case tr.ctx.Err() != nil:
		return ErrClosed
	}
	_, role := findContainer(pod, name)
	if role == roleUnknown {
		return errNotInSpec
	}
	start := &startCall{name: name, role: role}
	ctx, start.cancel = context.WithCancelCause(ctx)
	defer start.cancel(nil)
	defer context.AfterFunc(tr.ctx, func() { start.cancel(CauseTerminatorClosed) })() // Close cancels the start, too
	state := tr.lock(pod)
	if state.termination != nil && !state.termination.canRestart(name) {
		state.unlock()
		return errRefused
	}
	state.starts[start] = struct{}{}
	state.unlock()
	// A panic of do becomes an error. If do ignores the end of ctx, that is logged.
	var previousErr error // nil: a panic is always logged
	call.GuardRepeated(ctx, "the start", previousErr, logValues(pod, name), func() error {
		defer call.WatchEnd(ctx, "the start", logValues(pod, name)()...)()
		return do(ctx)
	}, func(doErr error) { err = state.startReturned(ctx, pod, start, doErr) })
	return err
}

// startReturned handles the return of the agent's start function with err, and returns the error of Start.
// A container that was started although the pod terminates must be stopped:
//
//   - A termination in progress requests a list, which has the container.
//   - If the termination has ended, startReturned begins another one under the old deadline, and waits for it. After
//     Close it cannot, and the error says so.
//
// It does neither if there is no termination, or if the termination stops only containers that its caller named.
func (p *podState) startReturned(ctx context.Context, apiPod *v1.Pod, start *startCall, err error) error {
	p.mu.Lock()
	start.returned, start.firstList = true, p.lists.started+1
	t := p.termination
	if t == nil || !t.usesLists() { // no termination will list what was started, so the start blocks nothing any more
		delete(p.starts, start)
		p.unblockStops()
		p.unlock()
		return withErrTerminating(ctx, err)
	}
	isLate := !t.inProgress()
	if isLate { // begin another termination
		leave, isOpen := p.terminator.enter("the termination", apiPod, "")
		if !isOpen {
			p.unlock()
			return withErrTerminating(ctx, errors.Join(err, ErrClosed))
		}
		defer leave()
		t = p.newTermination(p.terminator.callContext(ctx), apiPod, &t.request, t.deadline)
	}
	t.requireList()
	p.unlock()
	if isLate {
		_, waitErr := t.Wait(context.WithoutCancel(ctx))
		err = errors.Join(err, waitErr)
	}
	return withErrTerminating(ctx, err)
}

// withErrTerminating returns err, the error of a start. If the pod's termination has cancelled the start's context, it adds
// [ErrTerminating], even if err is nil: the container was started, but is stopped.
func withErrTerminating(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrTerminating) {
		return errors.Join(ErrTerminating, err)
	}
	return err
}
