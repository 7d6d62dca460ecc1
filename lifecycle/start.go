package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// ErrTerminating is wrapped by the error of [Pod.Start] for a pod whose termination has
// started. It is also the cause with which the context of a start that is under way ends
// then.
var ErrTerminating = errors.New("pod is being terminated")

var (
	errRefused      = fmt.Errorf("%w, or was and has not been forgotten", ErrTerminating)
	errNoFunction   = errors.New("the function that starts it is nil")
	errNoID         = errors.New("its start gave no ID")
	errNeverStarted = errors.New("its start had not returned when the grace was over")
)

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
// it returns no ID, or panics, it is not known whether the container runs. The pod is then [RuntimeStuck] whenever it is terminated, until a request that
// is Complete lacks the container, the pod's status has it running or terminated since a time
// after the call of Start, or [Pod.Forget].
//
// After [Terminator.Close] start is not called, and the error wraps [AgentStopping].
func (p *Pod) Start(ctx context.Context, name string, start func(context.Context) (id string, err error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a, pod, err := p.admit(name, start == nil, cancel)
	if err == nil {
		var id string
		unknown := true // it is not known whether start has started a container
		guarded(ctx, "start", pod, name, func() (err error) {
			if id, err = start(ctx); err == nil && id == "" {
				return errNoID
			}
			unknown = err != nil && !errors.Is(err, ErrContainerNotFound)
			return err
		}, func(startErr error) { err = a.startReturned(ctx, id, startErr, unknown) })
	}
	if err != nil {
		return fmt.Errorf("failed to start container %q of pod %q: %w", name, p.ref(), err)
	}
	return nil
}

// admit adds the attempt of a start, and returns it with its pod, or returns the error for a start that is refused.
func (p *Pod) admit(name string, isNil bool, cancel context.CancelCauseFunc) (*attempt, *v1.Pod, error) {
	s, err := p.lock()
	if err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	var before *attempt // of a sidecar that is restarted
	if s.current != nil {
		before = s.current.restartable(name)
	}
	switch {
	case p.terminator.settings.closed.Load():
		return nil, nil, AgentStopping
	case s.current != nil && before == nil:
		return nil, nil, errRefused
	case isNil:
		return nil, nil, errNoFunction
	}
	p.begin(s, s.pod)
	a := s.add(s.pod, name, "")
	a.start.cancel = cancel
	if before != nil {
		a.flags.hookDone, a.flags.announced, a.result.GrantedSeconds = true, true, before.result.GrantedSeconds
		s.current.awaitRestart(a, before)
	}
	return a, s.pod, nil
}

// startReturned handles the result of a start, and returns the error of Start. A termination
// that waits for the start goes on by itself. If the termination has given up waiting, the
// container is stopped here.
func (a *attempt) startReturned(ctx context.Context, id string, err error, unknown bool) error {
	a.mu.Lock()
	a.goroutines++
	defer a.doneAndUnlock()
	for c := a.ending(id); c != nil; c = a.ending(id) {
		c.waitLocked(func() bool { return c.run == nil }, nil, nil)
	}
	a.start.cancel, a.start.returnedAt = nil, time.Now()
	late := a.hasEnded()
	isStopped := late || a.run != nil && (!a.run.manner.restart || errors.Is(context.Cause(ctx), ErrTerminating))
	mayRun := err == nil || unknown && id != ""
	switch {
	case mayRun:
		a = a.identify(ctx, id)
	case unknown:
		a.start.err, a.flags.obsolete = err, false
		a.state.live.slot(a.result.Name).mergeUnknown(a)
	case a.run == nil:
		a.flags.obsolete, a.result.Outcome = true, NotFound
	case a.run.manner.restart:
		a.leave()
	}
	if late && mayRun && a.run == nil && !a.isOver() {
		if t := a.state.current; t.isActive() {
			t.await(a)
		}
		a.flags.hookDone, a.deadline = true, deadline{}
		a.startRunLocked(context.WithoutCancel(ctx), a.pod, grant(0), &run{unit: a.settings().newUnit()})
		a.waitLocked(func() bool { return a.run == nil }, nil, nil)
		err = errors.Join(err, resultOf(a.result).Err())
	}
	if isStopped {
		return errors.Join(ErrTerminating, err)
	}
	return err
}

// ending returns the attempt itself, or that with an ID that its start has given, if its run calls
// no StopContainer any more and has not ended; else nil.
func (a *attempt) ending(id string) *attempt {
	same := a
	if id != "" {
		same = a.state.live.find(id, a)
	}
	for _, c := range []*attempt{a, same} {
		if c != nil && c.run != nil && c.result.Outcome != "" {
			return c
		}
	}
	return nil
}

// identify gives an attempt, whose Start has returned, its ID. If that ID was named while the
// Start was under way, there is an attempt for it, which may have run its hook or have been
// stopped. It is the same: if it is being stopped or is stuck, it stays and is returned.
// Otherwise the attempt takes what is known of it; that it has ended is not, because a runtime
// may say so of a container that is not there yet.
func (a *attempt) identify(ctx context.Context, id string) *attempt {
	a.state.live.slot(a.result.Name).follow(a)
	same := a.state.live.find(id, a)
	isEarly := same != nil && !same.knownAt.Before(a.knownAt) && same.start.returnedAt.IsZero()
	switch {
	case same == nil:
	case same.run == nil && !isEarly:
		a.state.end(same) // the runtime uses the ID again
	case same.run != nil || same.isStuck():
		same.flags.started, same.flags.obsolete, same.flags.followed = true, false, false
		same.start.returnedAt, same.knownAt = a.start.returnedAt, a.knownAt
		same.wakeLocked()
		a.leave()
		return same
	default:
		a.flags.hookDone, a.flags.announced = a.flags.hookDone || same.flags.hookDone, same.flags.announced
		if a.result.Hook = same.result.Hook; a.run != nil && same.isOver() {
			before := same.result
			a.run.before = &before
		}
		same.leave()
	}
	a.result.ID, a.flags.started, a.flags.followed, a.flags.obsolete, a.start.err = id, true, false, false, nil
	a.exits.askLocked(context.WithoutCancel(ctx))
	return a
}

// leave removes an attempt that is another one, or has started nothing, from the slot and
// from the results.
func (a *attempt) leave() {
	a.flags.left = true
	a.wakeLocked()
	if a.run == nil {
		a.state.current.leftBy(a)
		a.state.drop(a)
	}
}
