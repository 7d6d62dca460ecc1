package lifecycle

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// ErrTerminating is what [Terminator.Start] gives for a pod whose termination has
// begun, and the cause that ends the context of a start under way.
var ErrTerminating = errors.New("pod is being terminated")

// errNeverStarted is why a container has no outcome that was being started when its
// pod's termination began, and still was at the end of the grace.
var errNeverStarted = errors.New("its start had not returned when the grace was over")

// Start runs start, the agent's own start of one container, in the caller's
// goroutine, and closes the gap between asking whether a pod is being terminated
// and starting (k/k#125050): start gives the ID of the container that it has started.
//
// Once the termination of the pod has begun, Start gives an error that wraps
// [ErrTerminating] and start is not run, or, if it runs, its context ends with that
// cause; a container that comes up all the same is stopped with the others of its
// pod, or, if those have been stopped meanwhile, before Start returns. The exception
// is a sidecar that [Termination.ShouldRestart]: it is started, its new ID takes the
// place of the old one, and the context ends when its turn to stop has come.
//
// After [Terminator.Close] nothing is started, and the error wraps [AgentStopping].
// An error of start is wrapped.
func (tr *Terminator) Start(ctx context.Context, pod *v1.Pod, name string, start func(context.Context) (id string, err error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := &guest{name: name, starts: true, cancel: cancel}
	if err := tr.admit(pod, g); err != nil {
		return startFailed(pod, name, err)
	}
	id, err := start(ctx)
	t := tr.dismiss(g, id, err == nil)
	switch {
	case t == nil && err == nil:
		return nil
	case t == nil:
		return startFailed(pod, name, err)
	case err != nil:
		t.startFailed(g)
		return startFailed(pod, name, errors.Join(ErrTerminating, err))
	default:
		return tr.arrive(ctx, t, g, id)
	}
}

// startFailed wraps the error of a start.
func startFailed(pod *v1.Pod, name string, err error) error {
	return fmt.Errorf("failed to start container %q of pod %q: %w", name, podText(pod), err)
}

// admit enters a call of the agent's for a pod, if its container may run.
func (tr *Terminator) admit(pod *v1.Pod, g *guest) error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.closed {
		return AgentStopping
	}
	state := tr.stateLocked(pod)
	switch t := state.termination; {
	case t == nil:
	case !g.starts:
		g.endWith(t)
	case !t.admitRestart(g):
		return ErrTerminating
	}
	g.state = state
	tr.guests[g] = struct{}{}
	return nil
}

// dismiss ends a call of the agent's, and gives the pod's termination if one has
// begun. A container that has come up before is remembered for it.
func (tr *Terminator) dismiss(g *guest, id string, up bool) *Termination {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	delete(tr.guests, g)
	if g.state.termination == nil && g.starts && up {
		put(&g.state.started, g.name, id)
	}
	return g.state.termination
}

// startFailed ends a container that did not come up. A sidecar that was not
// started again is left to its turn: its old ID is known to have exited.
func (t *Termination) startFailed(g *guest) {
	t.mu.Lock()
	defer t.unlock()
	if c := g.awaits; c.starting {
		c.endLocked(NotFound)
	} else {
		c.restart = nil
	}
}

// arrive hands a container that came up to its pod's termination.
func (tr *Terminator) arrive(ctx context.Context, t *Termination, g *guest, id string) error {
	switch t.take(g.awaits, id) {
	case tookRestarted:
		return nil
	case tookStarted:
		return startFailed(t.pod, g.name, ErrTerminating)
	default:
		_, err := tr.killLate(ctx, t.pod, Container{Name: g.name, ID: id, PreStopDone: true})
		return startFailed(t.pod, g.name, errors.Join(ErrTerminating, err))
	}
}

// taken says how a termination took a container that came up.
type taken int

const (
	tookNot       taken = iota // too late
	tookStarted                // it is being stopped with the others
	tookRestarted              // it runs until its turn
)

// take puts a container that came up in the place that waits for it.
func (t *Termination) take(c *container, id string) taken {
	t.mu.Lock()
	switch {
	case c.stop.ended || !c.stop.began.IsZero():
		t.unlock()
		return tookNot
	case !c.starting:
		c.restart, c.result.ID = nil, id
		t.unlock()
		return tookRestarted
	}
	c.starting, c.result.ID = false, id
	begun := t.begun
	t.unlock()
	if begun {
		t.send(c)
	}
	return tookStarted
}

// neverStartedLocked gives up on a container that is still being started when the
// grace is over; if it comes up later, its Start stops it.
func (c *container) neverStartedLocked() {
	c.stop.errs = append(c.stop.errs, errNeverStarted)
	c.endLocked(RuntimeStuck)
}
