package lifecycle

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// doneAndUnlock is called with the mutex held at the end of a goroutine that was at work
// for a container. It cleans up the table and unlocks it.
func (c *container) doneAndUnlock() {
	p := c.table
	c.goroutines--
	p.removeObsoleteLocked()
	p.removeIfEmptyLocked(podKey(c.pod))
	p.unlock()
}

// spawnLocked calls do, which is code of the embedder, for a container in a new goroutine,
// and then calls then with the error, with the mutex held. Close waits for the goroutine.
// returned is set when the call has ended; the mutex guards it. what names the code in
// error texts.
func (c *container) spawnLocked(ctx context.Context, what string, do func() error, then func(error)) (returned *bool) {
	c.goroutines++
	returned = new(bool)
	go c.call(ctx, what, c.pod, do, then, returned)
	return returned
}

// call is the goroutine of spawnLocked.
func (c *container) call(ctx context.Context, what string, pod *v1.Pod, do func() error, then func(error), returned *bool) {
	guarded(ctx, what, pod, c.result.Name, do, func(err error) {
		c.table.mu.Lock()
		then(err)
		*returned = true
		c.doneAndUnlock()
	})
}

// guarded calls do, which is code of the embedder, and then calls then with its error. If
// do panics or ends its goroutine, that is logged and becomes the error.
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

// watchExitLocked returns the channel of the [ExitWatcher] that is closed when the
// container exits. It is nil if there is no watcher, or if the watcher does not answer in
// time.
func (c *container) watchExitLocked(ctx context.Context) <-chan struct{} {
	exits, id := c.table.terminator.opts.Exits, c.result.ID
	if exits == nil {
		return nil
	}
	var watched <-chan struct{}
	answered := c.spawnLocked(ctx, "exit watcher", func() error {
		watched = exits.Exited(id)
		return nil
	}, c.addErrorLocked)
	latest := time.Now().Add(exitWatcherTimeout)
	c.table.waitLocked(func() bool { return *answered || c.table.closed },
		func() time.Time { return earlier(latest, c.deadlineTime()) }, nil)
	if !*answered {
		return nil
	}
	return watched
}

// exitWatcherTimeout is how long the answer of an [ExitWatcher] is waited for, so that a
// watcher that hangs does not use up the grace period.
const exitWatcherTimeout = 2 * time.Second

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
