package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// StillRunningError says which containers had not ended when the waiting for them
// did. Its cause, a context's, is to be had with errors.Is.
type StillRunningError struct {
	// Containers are "NAMESPACE/POD/CONTAINER", sorted.
	Containers []string
	// Cause is why the waiting ended.
	Cause error
}

// Error names the containers.
func (e *StillRunningError) Error() string {
	return fmt.Sprintf("stopped waiting for containers that have not ended: %s: %v", strings.Join(e.Containers, ", "), e.Cause)
}

// Unwrap gives the cause.
func (e *StillRunningError) Unwrap() error { return e.Cause }

// Close ends all terminations with the cause [AgentStopping] and waits until no
// goroutine works for any of them: hooks and stops are cancelled, and containers
// that have not ended are [LeftRunning]. The contexts of [Terminator.Start] and
// [Terminator.PostStart], which run in goroutines of the agent's, end as well, and are
// not waited for. ctx bounds the waiting: when it ends, the
// error is a [*StillRunningError] that names the containers whose hook or
// StopContainer ignores its cancellation. Close may be called again.
func (tr *Terminator) Close(ctx context.Context) error {
	leaving, guests := tr.shut()
	for _, g := range guests {
		g.cancel(AgentStopping)
	}
	for _, t := range leaving {
		t.leave()
	}
	var stuck []string
	for _, t := range leaving {
		select {
		case <-t.whenIdle():
		case <-ctx.Done():
			stuck = append(stuck, t.names(func(c *container) bool { return c.goroutines > 0 })...)
		}
	}
	if len(stuck) == 0 {
		return nil
	}
	slices.Sort(stuck)
	return &StillRunningError{Containers: stuck, Cause: context.Cause(ctx)}
}

// shut lets nothing begin from now on, and gives what has begun.
func (tr *Terminator) shut() (working []*Termination, guests []*guest) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.closed = true
	return slices.Collect(maps.Keys(tr.working)), slices.Collect(maps.Keys(tr.guests))
}

// isClosed tells whether nothing may begin any more.
func (tr *Terminator) isClosed() bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.closed
}

// release lets go of a termination that has ended and for which nothing works.
func (tr *Terminator) release(t *Termination) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	delete(tr.working, t)
}

// leave ends a termination because the agent stops.
func (t *Termination) leave() {
	t.mu.Lock()
	defer t.unlock()
	t.leaveLocked()
}

func (t *Termination) leaveLocked() {
	if t.over {
		return
	}
	t.left, t.cause = true, AgentStopping
	t.endLife(AgentStopping)
	for i := range t.containers {
		t.containers[i].leaveLocked()
	}
	t.settleLocked()
}

// leaveLocked leaves a container as it is.
func (c *container) leaveLocked() {
	if c.stop.ended {
		return
	}
	if c.hook.state == hookRunning {
		c.hook.state, c.hook.cutAt = hookCut, time.Now()
		c.result.Hook.Cause = AgentStopping
	}
	c.stop.errs = append(c.stop.errs, AgentStopping)
	c.endLocked(LeftRunning)
}

// whenIdle is closed once the termination has ended and no goroutine works for it.
func (t *Termination) whenIdle() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle == nil {
		t.idle = make(chan struct{})
		if t.reported && t.goroutines == 0 {
			close(t.idle)
		}
	}
	return t.idle
}

// names gives the containers that are meant, as [StillRunningError] has them.
func (t *Termination) names(meant func(*container) bool) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for i := range t.containers {
		if c := &t.containers[i]; meant(c) {
			names = append(names, t.pod.Namespace+"/"+t.pod.Name+"/"+c.result.Name)
		}
	}
	return names
}

// stillRunning is the error of a caller that stopped waiting.
func (t *Termination) stillRunning(ctx context.Context) error {
	names := t.names(func(c *container) bool { return !c.stop.ended })
	slices.Sort(names)
	return &StillRunningError{Containers: names, Cause: context.Cause(ctx)}
}
