package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// StillRunningError says which containers had not ended when the waiting for them
// did. Its cause, a context's, is to be had with errors.Is.
type StillRunningError struct {
	// Containers are "NAMESPACE/POD/CONTAINER", sorted.
	Containers []string
	// Cause is why the waiting ended.
	Cause error
}

// Error names the containers, after the kubelet's text where a timeout has ended the
// waiting.
func (e *StillRunningError) Error() string {
	text := "stopped waiting"
	if errors.Is(e.Cause, context.DeadlineExceeded) {
		text = "timeout waiting to kill pod"
	}
	return fmt.Sprintf("%s: containers that have not ended: %s: %v", text, strings.Join(e.Containers, ", "), e.Cause)
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
	tr.mu.Lock()
	tr.closed = true
	tables := slices.Collect(maps.Values(tr.pods))
	tr.mu.Unlock()
	for _, p := range tables {
		p.leave()
	}
	var stuck []string //nolint:prealloc // empty as a rule
	for _, p := range tables {
		stuck = append(stuck, p.awaitIdle(ctx)...)
	}
	if len(stuck) == 0 {
		return nil
	}
	slices.Sort(stuck)
	return &StillRunningError{Containers: stuck, Cause: context.Cause(ctx)}
}

// leave leaves the containers of a pod as they are.
func (p *podTable) leave() {
	p.mu.Lock()
	defer p.unlock()
	p.closed = true
	for _, c := range p.containers {
		if c.cancelStart != nil {
			c.cancelStart(AgentStopping)
		}
		if c.run != nil {
			c.run.cancel(AgentStopping)
		}
	}
}

// awaitIdle waits until no goroutine works for a pod, and names the containers for
// which one still does when ctx has ended.
func (p *podTable) awaitIdle(ctx context.Context) (stuck []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	works := func(c *container) bool { return c.calls > 0 }
	p.waitLocked(func() bool { return !slices.ContainsFunc(p.containers, works) }, nil, ctx.Done())
	for _, c := range p.containers {
		if works(c) {
			stuck = append(stuck, fullName(c.pod, c.result.Name))
		}
	}
	return stuck
}
