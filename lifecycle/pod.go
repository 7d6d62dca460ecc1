package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// ErrForgotten is the error of the methods of a [Pod] after [Pod.Forget].
var ErrForgotten = errors.New("the pod was forgotten")

var errNoPod = errors.New("the pod is nil")

// Pod is the life of one pod on this agent. It begins with the first [Pod.Start] or kill,
// and ends with [Pod.Forget]. Get one from [Terminator.Pod]. All methods may be called
// concurrently; after Forget they give [ErrForgotten].
//
// A life has a slot for each container name, and a slot has the attempts to run that
// container, at most eight. All methods use the same attempts. Therefore a termination takes
// over the kill of a single container, a second call joins the first, a deadline only moves
// earlier, and no hook runs twice.
type Pod struct {
	life *life // nil: the pod is nil
}

// Start calls start, the agent's function that starts one container, unless the pod is being
// terminated. An agent that starts its containers through it cannot start one after the
// termination of its pod has started (k/k#125050). start runs in the caller's goroutine and
// returns the ID of the container, which must not be "". Its error is wrapped; a panic
// becomes an error.
//
// If the termination of the pod starts while start runs, the context of start ends with the
// cause [ErrTerminating]. A container that is started all the same is stopped with the
// others of its pod or, if those have been stopped already, before Start returns. After the
// termination has started, start is not called, and the error wraps ErrTerminating. The
// exception is a sidecar for which [Termination.ShouldRestart] returns true: it is started,
// and its context ends when its turn to stop comes. The preStop hook of the sidecar does not
// run again.
//
// A container that is started again while the one before is not known to have ended does not
// replace it: both are stopped with the pod, the one before without its hook, unless the
// [ExitWatcher], the request or the pod's status shows that it runs. At most eight are kept.
//
// If start fails with an error that wraps [ErrContainerNotFound], it has started nothing, and
// the terminator keeps nothing of it: of a pod whose only start has failed, it knows no
// container. Terminate such a pod with [Request.Complete], which says that none runs; without
// it and without a status it is [RuntimeStuck] with [ErrUnknownContainers]. With any other error
// it may have started the container, as a request that is cancelled or whose answer is lost
// may. If it returns the ID together with the error, the container is stopped with its pod. If
// it returns no ID, or panics, it is not known whether the container runs. The pod is then
// [RuntimeStuck] whenever it is terminated, until a request that is Complete lacks the container,
// the pod's status has it running or terminated since a time after the call of Start, or
// [Pod.Forget].
//
// After [Terminator.Close] start is not called, and the error wraps [AgentStopping].
func (p *Pod) Start(ctx context.Context, name string, start func(context.Context) (id string, err error)) error {
	p = p.now()
	if err := p.life.start(ctx, p, name, start); err != nil {
		return fmt.Errorf("failed to start container %q of pod %q: %w", name, p.ref(), err)
	}
	return nil
}

// PostStart runs the postStart hook of a container that was started, with the same runner
// as preStop hooks, and waits for it. It returns nil if there is no hook.
//
// If the hook fails, PostStart records a FailedPostStartHook event and kills the container
// as [Pod.KillContainer] does, which gives [ErrUnit] with a [PodStopper]. The error wraps
// that of the hook and that of the kill. What happens next is up to the agent's restart
// policy. A nil pod and an empty ID are errors.
//
// The context of the hook is derived from ctx. It also ends
//
//   - when the container exits during a sleep, which is no failure;
//   - when the container is being stopped and its grace period is over, or it has ended, but
//     not when the termination of its pod starts (KEP-4438);
//   - with the cause [AgentStopping], when the terminator is closed.
//
// If ctx has ended, the container is being stopped, the pod is or was terminated, or the
// terminator was closed, an error of the hook is returned, but there is no event and no kill. A hook that ignores its context holds
// up only this call.
func (p *Pod) PostStart(ctx context.Context, c Container) error {
	p = p.now()
	failed, err := (&postStart{caller: ctx, container: c}).run(p)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("postStart hook of container %q in pod %q failed: %w", c.Name, p.ref(), err)
	if !failed {
		return err
	}
	_, killErr := p.KillContainer(ctx, c, ContainerRequest{
		Reason: graceperiod.ReasonFailedPostStartHook, Message: "FailedPostStartHook",
	})
	return errors.Join(err, killErr)
}

// Terminate starts the termination of the pod and returns at once. The pod must not be
// changed until the termination has ended.
//
// The grace period is that of [graceperiod.ForPod], with the override of the request; it
// is at least 1 s. The containers are those of the request, or those that run by the
// pod's status, and always those that [Pod.Start] has started or is starting and that are
// not known to have exited. The error of a container whose state nothing of this tells
// wraps [ErrUnknownContainers]. A hook or stop that is under way for a container becomes
// part of the termination and gets its deadline.
//
// A pod has one termination at a time. If one is under way, Terminate returns it, adds
// containers that it did not have, and shortens its grace period if the pod or the request
// now gives less. A termination that has ended is kept until [Pod.Forget], and is returned
// again unless there is something to stop. Then another one replaces it. It has the old
// deadline while that is ahead, and for containers that are stuck. Else it has the grace
// period of the request. That is also so for a container that has ended and that the
// request or the status names again: unless the [ExitWatcher] says that it has exited, within
// 100 ms, the runtime is asked to stop it again, without a hook.
//
// ctx gives values such as the logger; its end and its deadline have no effect. After
// [Terminator.Close] the result is a termination that has ended, with all containers
// [LeftRunning]. For a nil pod, and after Forget, it is one that has ended with an error.
func (p *Pod) Terminate(ctx context.Context, req Request) *Termination {
	p = p.now()
	t, err := terminate(ctx, p.life, p, nil, &req)
	if err != nil {
		return failedTermination(err)
	}
	return t
}

// Kill calls [Pod.Terminate] and then [Termination.Wait].
func (p *Pod) Kill(ctx context.Context, req Request) (Result, error) {
	return p.Terminate(ctx, req).Wait(ctx)
}

// KillContainer stops one container of a pod that goes on, and waits until it has ended.
// Call it when the liveness or startup probe or the postStart hook of the container has
// failed, or when its definition has changed. The grace period is that of
// [graceperiod.ForContainer]; the Killing event, the preStop hook and the stop are as in
// [Pod.Kill], but the container does not wait for a turn. Concurrent calls for several
// containers take as long as the longest of them, not as their sum (k/k#138146).
//
// When ctx ends first, the container is still stopped, and the error is a
// [*StillRunningError]. If the container is being stopped already, alone or with its pod,
// KillContainer waits for that, and a grace period in the request can shorten it; a sidecar that
// waits for its turn is stopped at once, and may be started again
// ([Termination.ShouldRestart]). One that has ended is asked to stop again, without a hook and with the grace period of this request,
// unless the [ExitWatcher] says within 100 ms that it has exited. If the termination of the
// pod starts meanwhile, it includes the container and gives it its deadline. A container that
// is [RuntimeStuck] is stopped again, under its old deadline. No hook runs twice. A nil pod and
// an empty ID are errors; with a [PodStopper] the error is [ErrUnit].
func (p *Pod) KillContainer(ctx context.Context, c Container, req ContainerRequest) (ContainerResult, error) {
	p = p.now()
	return p.life.killContainer(ctx, p, nil, c, req)
}

// Termination returns the termination of the pod that is under way or has ended; false if
// there is none, and after Forget.
func (p *Pod) Termination() (*Termination, bool) {
	p = p.now()
	if _, err := p.life.lock(p, nil); err != nil {
		return nil, false
	}
	defer p.life.mu.Unlock()
	return p.life.current, p.life.current != nil
}

// Forget ends the life of the pod. Call it when the pod is gone: it frees the memory, and a
// pod with the same UID, such as a static pod that returns, can be started and terminated
// again, with a handle of its own.
//
// Forget stops nothing. A termination that is under way goes on, and containers that are
// being started or stopped belong to the next life of the pod until they have ended. It also
// removes the record that a preStop hook has run: if a container is stopped again in the next
// life, its hook runs again.
func (p *Pod) Forget() {
	p = p.now()
	p.life.forget(p)
}

// now returns the handle of the life that the pod has now. It is another one if that life began
// without a UID after this handle was made, which has begun none.
func (p *Pod) now() *Pod {
	if pod := p.life.unbegun(p); pod != nil {
		return p.life.terminator.Pod(pod)
	}
	return p
}

// ref returns the name of the pod in errors.
func (p *Pod) ref() string {
	pod, err := p.life.lock(p, nil)
	switch {
	case err == nil:
		defer p.life.mu.Unlock()
		return podText(pod)
	case p.life == nil:
		return ""
	default:
		return "that was forgotten"
	}
}
