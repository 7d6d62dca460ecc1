package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// ErrTerminating is what [Terminator.Start] gives for a pod whose termination has
// begun, and the cause that ends the context of a start under way. The pod stays
// refused until [Terminator.Forget].
var ErrTerminating = errors.New("pod is being terminated")

var (
	errRefused      = fmt.Errorf("%w, or was and has not been forgotten", ErrTerminating)
	errNoPod        = errors.New("the pod is nil")
	errNoID         = errors.New("its start gave no ID")
	errNeverStarted = errors.New("its start had not returned when the grace was over")
)

// Start runs start, the agent's own start of one container, in the caller's
// goroutine, and closes the gap between asking whether a pod is being terminated
// and starting (k/k#125050): start gives the ID of the container that it has started,
// which must not be "". A start that fails after its context has ended may have started
// its container all the same, as a request that is cancelled does: it gives the ID with its
// error, so that the container is stopped with its pod, or an error that wraps
// [ErrContainerNotFound] if it knows that none runs. With neither, and if it panics, it is
// not known whether the container runs, and the pod is [RuntimeStuck] when it is
// terminated, unless Start has started the container since, or the request or the pod's
// status then says what became of it. A start that fails otherwise has started nothing.
//
// Once the termination of the pod has begun, Start gives an error that wraps
// [ErrTerminating] and start is not run, or, if it runs, its context ends with that
// cause; a container that comes up all the same is stopped with the others of its
// pod, or, if those have been stopped meanwhile, before Start returns. The exception
// is a sidecar that [Termination.ShouldRestart]: it is started, its new ID takes the
// place of the old one, and the context ends when its turn to stop has come.
//
// After [Terminator.Close] nothing is started, and the error wraps [AgentStopping].
// An error of start is wrapped; one that panics has an error, too.
func (tr *Terminator) Start(ctx context.Context, pod *v1.Pod, name string, start func(context.Context) (id string, err error)) error {
	if pod == nil {
		return fmt.Errorf("failed to start container %q: %w", name, errNoPod)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := tr.admit(pod, name, cancel)
	if err == nil {
		var id string
		unknown := true // whether it has started something
		guarded(ctx, "start", pod, name, func() (err error) {
			if id, err = start(ctx); err == nil && id == "" {
				return errNoID
			}
			unknown = err != nil && ctx.Err() != nil && !errors.Is(err, ErrContainerNotFound)
			return err
		}, func(failed error) { err = c.startReturned(ctx, id, failed, unknown) })
	}
	if err != nil {
		return fmt.Errorf("failed to start container %q of pod %q: %w", name, podText(pod), err)
	}
	return nil
}

// admit enters a start, if its container may run.
func (tr *Terminator) admit(pod *v1.Pod, name string, cancel context.CancelCauseFunc) (*container, error) {
	p := tr.lock(podKey(pod), true)
	defer p.mu.Unlock()
	var c *container
	switch {
	case p.closed:
		return nil, AgentStopping
	case p.current == nil:
		c = p.addLocked(pod, name, "")
		p.tidyLocked()
	default:
		if c = p.current.restartableLocked(name); c == nil {
			return nil, errRefused
		}
	}
	c.cancelStart, c.startBegan = cancel, time.Now()
	return c, nil
}

// startReturned puts what a start has given into the table, and gives what Start is to
// return. A termination that waits for the container goes on with it; where it has not
// waited any more, the container is stopped now.
func (c *container) startReturned(ctx context.Context, id string, err error, unknown bool) error {
	p := c.table
	p.mu.Lock()
	c.calls++
	defer c.rest()
	isEnding := func() bool { return c.run != nil && c.result.Outcome != "" } // it stops nothing any more
	p.waitLocked(func() bool { return !isEnding() }, nil, nil)
	c.cancelStart, c.startEnded = nil, time.Now()
	late := c.hasEnded()
	restarted := c.result.ID != "" && !errors.Is(context.Cause(ctx), ErrTerminating)
	stopping := c.run != nil && !restarted || late
	mayRun := err == nil || unknown && id != ""
	switch {
	case mayRun:
		c.result.ID, c.started, c.obsolete, c.startErr = id, true, false, nil
		p.dropLocked(c, func(other *container) bool { // not one that was started meanwhile
			return other.cancelStart == nil && !other.startEnded.After(c.startBegan)
		})
	case unknown:
		c.startErr = err
		p.dropLocked(c, (*container).isLost)
	case c.run == nil:
		c.obsolete = true
	}
	if late && mayRun {
		c.hooked, c.deadline = true, deadline{}
		c.beginLocked(context.WithoutCancel(ctx), c.pod, grant(0), &run{})
		p.waitLocked(func() bool { return c.run == nil }, nil, nil)
		err = errors.Join(err, resultOf(c.result).Err())
	}
	if stopping {
		return errors.Join(ErrTerminating, err)
	}
	return err
}

// ShouldRestart tells whether a sidecar that has died while its pod is being
// terminated is to be started again, because its turn to stop has not come and the
// main containers may still need it, and for how long at most (KEP-4438). It is so
// while others are left that stop before it, unless the grace is 1 s or less. The
// agent starts it with [Terminator.Start]. For a name that is no sidecar's of the
// termination it is false.
func (t *Termination) ShouldRestart(name string) (restart bool, left time.Duration) {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	if t.restartableLocked(name) == nil {
		return false, 0
	}
	return true, time.Until(t.deadline.at())
}

// restartableLocked finds a sidecar that may be started again, nil if there is none.
func (t *Termination) restartableLocked(name string) *container {
	if t.active == nil || t.deadline.granted <= graceperiod.MinimumPodSeconds {
		return nil
	}
	for _, c := range t.active.containers {
		if c.result.Name == name && c.run != nil && c.cancelStart == nil && c.result.ID != "" && c.run.mustWaitLocked() {
			return c
		}
	}
	return nil
}
