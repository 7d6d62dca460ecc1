package lifecycletest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// RunInContainer runs a command with the container's [Script.Exec], for at most timeout if
// that is above 0. For a container that has exited it returns [ErrContainerExited], and for
// an unknown one an error that wraps [lifecycle.ErrContainerNotFound].
func (r *Runtime) RunInContainer(ctx context.Context, id string, cmd []string, timeout time.Duration) ([]byte, error) {
	r.mu.Lock()
	r.execs = append(r.execs, Exec{ID: id, Cmd: slices.Clone(cmd), Timeout: timeout, At: time.Now()})
	c := r.containers[id]
	gone := c != nil && c.gone
	away := r.awayLocked()
	r.mu.Unlock()
	switch {
	case away:
		return nil, ErrAway
	case c == nil:
		return nil, fmt.Errorf("failed to find container %q: %w", id, lifecycle.ErrContainerNotFound)
	case gone:
		return nil, ErrContainerExited
	case c.script.Exec == nil:
		return nil, nil
	}
	ctx, cancel := r.untilAway(ctx)
	defer cancel()
	return c.exec(ctx, cmd, timeout)
}

// exec runs a scripted command with a context that ends when the container exits.
func (c *container) exec(ctx context.Context, cmd []string, timeout time.Duration) ([]byte, error) {
	if timeout > 0 {
		timed, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		ctx = timed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watcher sync.WaitGroup
	defer watcher.Wait() // the deferred cancel below runs first, and ends the watcher
	defer cancel(nil)
	watcher.Add(1)
	go func() {
		defer watcher.Done()
		select {
		case <-c.exited:
			cancel(ErrContainerExited)
		case <-ctx.Done():
		}
	}()
	return c.script.Exec(ctx, cmd)
}
