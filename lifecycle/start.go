package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
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

// start is a call of Start that is under way for a container.
type start struct {
	cancel context.CancelCauseFunc // nil: none is under way
	err    error                   // why it is not known what it has started
}

// starting tells whether a Start is under way.
func (c *container) starting() bool { return c.start.cancel != nil }

// Start runs start, the agent's own start of one container, in the caller's
// goroutine, and closes the gap between asking whether a pod is being terminated
// and starting (k/k#125050): start gives the ID of the container that it has started,
// which must not be "".
//
// Once the termination of the pod has begun, Start gives an error that wraps
// [ErrTerminating] and start is not run, or, if it runs, its context ends with that
// cause; a container that comes up all the same is stopped with the others of its
// pod, or, if those have been stopped meanwhile, before Start returns. The exception
// is a sidecar that [Termination.ShouldRestart]: it is started, its new ID takes the
// place of the old one, and the context ends when its turn to stop has come.
//
// After [Terminator.Close] nothing is started, and the error wraps [AgentStopping].
// An error of start is wrapped; one that panics has an error, too, and whether its
// container runs is then not known.
func (tr *Terminator) Start(ctx context.Context, pod *v1.Pod, name string, start func(context.Context) (id string, err error)) error {
	if pod == nil {
		return fmt.Errorf("failed to start container %q: %w", name, errNoPod)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := tr.admit(pod, name, cancel)
	if err == nil {
		err = c.callStart(ctx, pod, start)
	}
	if err != nil {
		return fmt.Errorf("failed to start container %q of pod %q: %w", name, podText(pod), err)
	}
	return nil
}

// admit enters a start, if its container may run.
func (tr *Terminator) admit(pod *v1.Pod, name string, cancel context.CancelCauseFunc) (*container, error) {
	p := tr.lock(pod)
	defer p.mu.Unlock()
	var c *container
	switch {
	case p.closed:
		return nil, AgentStopping
	case p.current == nil:
		c = p.addLocked(name, "")
		c.pod = pod
		defer p.tidyLocked()
	default:
		if c = p.current.restartableLocked(name); c == nil {
			return nil, errRefused
		}
	}
	c.start.cancel = cancel
	return c, nil
}

// callStart calls start and notes what it gives.
func (c *container) callStart(ctx context.Context, pod *v1.Pod, start func(context.Context) (string, error)) (err error) {
	var id string
	var unknown error
	guarded(ctx, "start", pod, c.result.Name, func() (failed error) {
		unknown = errNoID
		if id, failed = start(ctx); failed != nil || id != "" {
			unknown = nil
		}
		return failed
	}, func(failed error) {
		if unknown != nil && failed != nil {
			unknown = failed // start did not return
		}
		err = c.startReturned(ctx, id, cmp.Or(failed, unknown), unknown != nil)
	})
	return err
}

// startReturned puts what a start has given into the table, and gives what Start is to
// return. A termination that waits for the container goes on with it; where it has not
// waited any more, the container is stopped now.
func (c *container) startReturned(ctx context.Context, id string, err error, unknown bool) error {
	p := c.table
	p.mu.Lock()
	defer p.terminator.release(podKey(c.pod))
	defer p.unlock()
	c.start.cancel = nil
	late := c.hasEnded()
	restarted := c.ending && c.result.ID != "" && !errors.Is(context.Cause(ctx), ErrTerminating)
	stopping := c.ending && !restarted || late
	switch {
	case err == nil:
		c.result.ID, c.started = id, true
		if c.ending && kindOf(c.handler()) == kindSleep {
			c.askExitLocked(c.life)
		}
		p.supersedeLocked(c)
	case !c.ending:
		c.obsolete = true
	case unknown:
		c.start.err = err
	}
	if late && err == nil {
		c.hook.ran, c.obsolete, c.deadline = true, false, deadline{}
		c.beginLocked(context.WithoutCancel(ctx), c.pod, grant(0))
		p.waitLocked(func() bool { return !c.ending }, nil)
		err = resultOf(c.result).Err()
	}
	p.tidyLocked()
	if stopping {
		return errors.Join(ErrTerminating, err)
	}
	return err
}

// supersedeLocked lets go of what was started before a container, of the same name.
func (p *podTable) supersedeLocked(c *container) {
	for _, other := range p.containers {
		if other != c && other.result.Name == c.result.Name && !other.ending && !other.isPartOf(p.current) {
			other.obsolete = true
		}
	}
}

// awaitStart waits for the start of a container that is to be stopped, until its grace
// is over. It gives an outcome if there is nothing to stop.
func (c *container) awaitStart() (Outcome, error) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if c.starting() {
		c.start.cancel(ErrTerminating)
		c.table.waitLocked(func() bool { return !c.starting() }, c.grace.Done())
	}
	switch {
	case c.isLeft():
		return LeftRunning, nil
	case c.starting():
		return RuntimeStuck, errNeverStarted
	case c.start.err != nil:
		return RuntimeStuck, c.start.err
	case c.result.ID == "":
		return NotFound, nil
	default:
		return "", nil
	}
}
