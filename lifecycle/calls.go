package lifecycle

import (
	"context"
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
)

// calls are the goroutines that are at work for one container, and those who wait for what
// these do. Each container has its own, so that a change wakes only those whom it concerns.
//
// A function whose name ends in Locked is called with the mutex held, which is that of the
// pod. Where it waits, waitLocked unlocks the mutex meanwhile.
type calls struct {
	mu         *sync.Mutex
	goroutines int
	changed    chan struct{}              // closed when something has changed; nil: nobody waits for that
	idle       interface{ sweepLocked() } // called when no goroutine is left
}

// wakeLocked makes each waitLocked check its condition again.
func (c *calls) wakeLocked() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// wake is called by the timer of waitLocked. Such a timer takes less memory than one with a
// channel.
func (c *calls) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakeLocked()
}

// withoutMutexLocked calls do, which may block, with the mutex unlocked.
func (c *calls) withoutMutexLocked(do func()) {
	c.mu.Unlock()
	defer c.mu.Lock()
	do()
}

// waitLocked waits until ready returns true, until the time that the function until
// returns, or until the channel of interrupt is closed. The mutex is unlocked meanwhile. All
// three are called after each change, because their results may change. If until is nil or
// returns the zero time, there is no time limit; interrupt may be nil too.
func (c *calls) waitLocked(ready func() bool, until func() time.Time, interrupt func() <-chan struct{}) {
	for interrupted := false; !interrupted && !ready(); {
		left := time.Duration(math.MaxInt64)
		if until != nil && !until().IsZero() {
			left = time.Until(until())
		}
		if left <= 0 {
			return
		}
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		var stop <-chan struct{}
		if interrupt != nil {
			stop = interrupt()
		}
		var timer *time.Timer
		if left < math.MaxInt64 {
			timer = time.AfterFunc(left, c.wake)
		}
		c.mu.Unlock()
		select {
		case <-changed:
		case <-stop:
			interrupted = true
		}
		if timer != nil {
			timer.Stop()
		}
		c.mu.Lock()
	}
}

// spawnLocked calls do, which is code of the embedder, for a container in a new goroutine,
// and then calls then with the error, with the mutex held. Close waits for the goroutine.
// returned is set when the call has ended; the mutex guards it. what names the code in
// error texts.
func (c *calls) spawnLocked(ctx context.Context, what string, pod *v1.Pod, name string, do func() error, then func(error)) (returned *bool) {
	c.goroutines++
	returned = new(bool)
	go call.GuardAbout(ctx, what, about(pod, name), do, func(err error) {
		c.mu.Lock()
		then(err)
		*returned = true
		c.doneAndUnlock()
	})
	return returned
}

// doneAndUnlock is called with the mutex held at the end of a goroutine that was at work
// for the container.
func (c *calls) doneAndUnlock() {
	c.goroutines--
	c.wakeLocked()
	if c.goroutines == 0 {
		c.idle.sweepLocked()
	}
	c.mu.Unlock()
}

// about returns what the log of a panic has to say of a container.
func about(pod *v1.Pod, name string) func() []any {
	return func() []any { return []any{"pod", klog.KObj(pod), "containerName", name} }
}

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
