package lifecycle

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
)

// container is one container on its way to its end. Its termination's mutex guards
// all that changes.
type container struct {
	termination *Termination
	spec        *v1.Container // nil: the pod's spec has none of this name
	role        role
	result      ContainerResult
	goroutines  int
	ended       chan struct{} // made when it is first asked for: closed at its end

	starting     bool               // the agent is starting it: there is no ID yet
	restart      context.CancelFunc // nil: it is not being started again
	kill         *container         // nil: else a kill under way that stands for all that follows
	hook         preStop
	waitingSince time.Time
	stop         stop
}

// stage is a part of a container's end that may block. It is run without the lock,
// and gives the stage that comes next, nil when that is for another to begin.
type stage func(*container) stage

// enter fills in a container before its termination begins.
func (c *container) enter(t *Termination, named Container) {
	c.termination = t
	c.spec, c.role = findContainer(t.pod, named.Name)
	c.result = ContainerResult{Name: named.Name, ID: named.ID, GrantedSeconds: t.granted}
	if c.spec == nil {
		c.result.Err = notInSpec(t.pod, named)
	}
	c.hook.enter(c, named.PreStopDone)
}

// goLocked runs stages of a container in a goroutine that Close waits for; nil
// needs none.
func (t *Termination) goLocked(c *container, next stage) {
	if next == nil {
		return
	}
	t.goroutines++
	c.goroutines++
	go c.run(next)
}

// run is such a goroutine. It is under every hook, and kept shallow: with a frame
// more its stack would not fit into 2 KiB while the hook sleeps.
func (c *container) run(next stage) {
	for next != nil {
		next = next(c)
	}
	c.rest()
}

// rest ends a goroutine.
func (c *container) rest() {
	t := c.termination
	t.mu.Lock()
	defer t.unlock()
	t.goroutines--
	c.goroutines--
	t.restLocked()
}

// nextLocked gives the stage that a container has before it, nil while it waits
// for its turn, and when it needs nothing any more.
func (c *container) nextLocked() stage {
	pending, turn := c.hook.state == hookPending, c.hasTurnLocked()
	switch {
	case c.stop.ended || c.termination.left || c.starting:
		return nil
	case c.kill != nil:
		return c.followLocked()
	case pending && c.termination.spentLocked():
		c.hook.skip(c)
		return c.nextLocked()
	case pending && (turn || c.termination.owner.opts.HookTiming == HooksAtTermination):
		return c.beginHookLocked()
	case c.termination.exited:
		c.endLocked(Graceful)
		return nil
	case !turn:
		c.result.Phase, c.waitingSince = PhaseWaiting, time.Now()
		return nil // whoever gives it its turn sends it on
	default:
		return c.beginStopLocked()
	}
}

// whenEnded is closed once nothing more will be done about the container, and, after
// a kill, it may be killed again.
func (c *container) whenEnded() <-chan struct{} {
	if c.termination.single != nil {
		return c.termination.done
	}
	c.termination.mu.Lock()
	defer c.termination.mu.Unlock()
	if c.ended == nil {
		c.ended = make(chan struct{})
		if c.result.Phase == PhaseEnded {
			close(c.ended)
		}
	}
	return c.ended
}

// snapshot is what became of the container so far.
func (c *container) snapshot() ContainerResult {
	c.termination.mu.Lock()
	defer c.termination.mu.Unlock()
	return c.result
}
