package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// guarded calls code of the embedder's and hands on what it gives. Code that panics,
// or that ends its goroutine, gives an error.
func guarded(ctx context.Context, what string, pod *v1.Pod, name string, do func() error, then func(error)) {
	var err error
	returned := false
	defer func() {
		if !returned {
			err = fmt.Errorf("the %s ended its goroutine", what)
			if r := recover(); r != nil {
				err = fmt.Errorf("the %s panicked: %v", what, r)
			}
			klog.FromContext(ctx).Error(err, "Code that was called for a container did not return",
				"pod", klog.KObj(pod), "containerName", name, "stack", string(debug.Stack()))
		}
		then(err)
	}()
	err = do()
	returned = true
}

// spawn is guarded in a goroutine of its own, which Close waits for.
func (c *container) spawn(ctx context.Context, what string, do func() error, then func(error)) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.spawnLocked(ctx, what, do, then)
}

func (c *container) spawnLocked(ctx context.Context, what string, do func() error, then func(error)) {
	c.calls++
	pod, name := c.pod, c.result.Name
	go func() {
		defer c.rest(pod)
		guarded(ctx, what, pod, name, do, then)
	}()
}

// call is spawn that waits until the code has returned, and until the grace is over,
// or a moment past that, at the latest. What goes wrong is an error of the container's.
func (c *container) call(what string, do func()) {
	done := make(chan struct{})
	c.spawn(c.life, what, func() error { do(); return nil }, func(err error) {
		c.note(err)
		close(done)
	})
	over, moment := c.grace.Done(), (<-chan time.Time)(nil)
	if c.grace.Err() != nil {
		over, moment = c.life.Done(), time.After(abandonAfter)
	}
	select {
	case <-done:
	case <-over:
	case <-moment:
	}
}

// note adds an error to the result of a container, unless that is final.
func (c *container) note(err error) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if err != nil && c.ending {
		c.result.Err = errors.Join(c.result.Err, err)
	}
}

// exit is what the [ExitWatcher] says of a container.
type exit struct {
	asked  int // times that it has not answered
	exited <-chan struct{}
}

// askExitLocked asks when a container exits, whose ID is new.
func (c *container) askExitLocked(ctx context.Context) {
	exits, id := c.table.terminator.opts.Exits, c.result.ID
	c.exit.exited = nil
	if exits == nil || id == "" {
		return
	}
	c.exit.asked++
	var exited <-chan struct{}
	c.spawnLocked(ctx, "exit watcher", func() error {
		exited = exits.Exited(id)
		return nil
	}, func(err error) {
		c.note(err)
		c.table.mu.Lock()
		defer c.table.unlock()
		c.exit.asked--
		if c.result.ID == id {
			c.exit.exited = exited
		}
	})
}

// exited is closed when a container exits; nil if nobody can tell until over is closed.
func (c *container) exited(over <-chan struct{}) <-chan struct{} {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.table.waitLocked(func() bool { return c.exit.asked == 0 }, over)
	return c.exit.exited
}
