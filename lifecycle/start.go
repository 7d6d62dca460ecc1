package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// ErrTerminating is wrapped by the error of [Terminator.Start] for a pod whose termination
// has started, until [Terminator.Forget]. It is also the cause with which the context of a
// start that is under way ends then.
var ErrTerminating = errors.New("pod is being terminated")

var (
	errRefused      = fmt.Errorf("%w, or was and has not been forgotten", ErrTerminating)
	errNoPod        = errors.New("the pod is nil")
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
// its new ID replaces the old one, and its context ends when its turn to stop comes.
//
// If start fails although its context has not ended, it has started nothing, and the
// terminator keeps nothing of it: of a pod whose only start has failed, it knows no container.
// Terminate such a pod with an empty list of containers, which says that none runs; without a
// list and without a status it is [RuntimeStuck] with [ErrUnknownContainers]. If start fails
// after its context has ended, it may have started the container, as a request that is
// cancelled may. It then returns the ID together with the error, and the container is
// stopped with its pod; or an error that wraps [ErrContainerNotFound], if it knows that the
// container does not run. If it returns neither, or panics, it is not known whether the
// container runs. The pod is then [RuntimeStuck] when it is terminated, unless a later Start
// of the container has succeeded, or the request or the pod's status says how it is.
//
// After [Terminator.Close] start is not called, and the error wraps [AgentStopping].
func (tr *Terminator) Start(ctx context.Context, pod *v1.Pod, name string, start func(context.Context) (id string, err error)) error {
	if pod == nil {
		return fmt.Errorf("failed to start container %q: %w", name, errNoPod)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := tr.admit(pod, name, cancel)
	if err == nil {
		var id string
		unknown := true // it is not known whether start has started a container
		guarded(ctx, "start", pod, name, func() (err error) {
			if id, err = start(ctx); err == nil && id == "" {
				return errNoID
			}
			unknown = err != nil && ctx.Err() != nil && !errors.Is(err, ErrContainerNotFound)
			return err
		}, func(startErr error) { err = c.startReturned(ctx, id, startErr, unknown) })
	}
	if err != nil {
		return fmt.Errorf("failed to start container %q of pod %q: %w", name, podText(pod), err)
	}
	return nil
}

// admit adds the container of a start to the table, or returns the error for a start that is
// refused.
func (tr *Terminator) admit(pod *v1.Pod, name string, cancel context.CancelCauseFunc) (*container, error) {
	p := tr.lock(podKey(pod), true)
	defer p.mu.Unlock()
	var c *container
	switch {
	case p.closed:
		return nil, AgentStopping
	case p.current == nil:
		c = p.addLocked(pod, name, "")
		p.removeObsoleteLocked()
	default:
		if c = p.current.restartableLocked(name); c == nil {
			return nil, errRefused
		}
	}
	c.starting.cancel, c.starting.calledAt = cancel, time.Now()
	return c, nil
}

// startReturned handles the result of a start, and returns the error of Start. A termination
// that waits for the start goes on by itself. If the termination has given up waiting, the
// container is stopped here.
func (c *container) startReturned(ctx context.Context, id string, err error, unknown bool) error {
	p := c.table
	p.mu.Lock()
	c.goroutines++
	defer c.doneAndUnlock()
	isEnding := func() bool { return c.run != nil && c.result.Outcome != "" } // the run calls no StopContainer any more
	p.waitLocked(func() bool { return !isEnding() }, nil, nil)
	c.starting.cancel, c.starting.returnedAt = nil, time.Now()
	late := c.hasEnded()
	restarted := c.result.ID != "" && !errors.Is(context.Cause(ctx), ErrTerminating)
	stopping := c.run != nil && !restarted || late
	mayRun := err == nil || unknown && id != ""
	switch {
	case mayRun:
		c.result.ID, c.started, c.obsolete, c.starting.err = id, true, false, nil
		p.markReplacedLocked(c, func(other *container) bool { // other was not started meanwhile
			return other.starting.cancel == nil && !other.starting.returnedAt.After(c.starting.calledAt)
		})
	case unknown:
		c.starting.err = err
		p.markReplacedLocked(c, (*container).mayHaveStarted)
	case c.run == nil:
		c.obsolete = true
	}
	if late && mayRun {
		c.hookDone, c.deadline = true, deadline{}
		c.startRunLocked(context.WithoutCancel(ctx), c.pod, grant(0), &run{})
		p.waitLocked(func() bool { return c.run == nil }, nil, nil)
		err = errors.Join(err, resultOf(c.result).Err())
	}
	if stopping {
		return errors.Join(ErrTerminating, err)
	}
	return err
}

// ShouldRestart reports whether a sidecar that has exited while its pod is being terminated
// should be started again, with [Terminator.Start], because the main containers may still
// need it (KEP-4438). left is the time until the deadline. The result is true while there
// are containers that must be stopped before the sidecar, unless the grace period is 1 s or
// less. It is false for a name that is not that of a sidecar in the termination.
func (t *Termination) ShouldRestart(name string) (restart bool, left time.Duration) {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	if t.restartableLocked(name) == nil {
		return false, 0
	}
	return true, time.Until(t.deadline.at())
}

// restartableLocked returns a sidecar that may be started again, nil if the name is not that
// of one.
func (t *Termination) restartableLocked(name string) *container {
	if t.active == nil || t.deadline.granted <= graceperiod.MinimumPodSeconds {
		return nil
	}
	for _, c := range t.active.containers {
		if c.result.Name == name && c.run != nil && c.starting.cancel == nil && c.result.ID != "" && c.run.mustWaitLocked() {
			return c
		}
	}
	return nil
}
