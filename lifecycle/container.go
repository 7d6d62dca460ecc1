package lifecycle

import (
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

	hook         preStop
	waitingSince time.Time // zero: it does not wait
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

// goLocked runs stages of a container in a goroutine that Close waits for.
func (t *Termination) goLocked(c *container, next stage) {
	t.goroutines++
	c.goroutines++
	go func() {
		for next != nil {
			next = next(c)
		}
		t.mu.Lock()
		defer t.unlock()
		t.goroutines--
		c.goroutines--
		t.restLocked()
	}()
}

// begin says that the container is being stopped, before anything is done to it.
func (c *container) begin() stage {
	c.termination.recordKilling(c)
	c.termination.mu.Lock()
	defer c.termination.unlock()
	return c.nextLocked()
}

// nextLocked gives the stage that a container has before it, nil while it waits
// for its turn, and when it needs nothing any more.
func (c *container) nextLocked() stage {
	pending, turn := c.hook.state == hookPending, c.hasTurnLocked()
	switch {
	case c.stop.ended || c.termination.left:
		return nil
	case pending && c.termination.spentLocked():
		c.hook.skip(c)
		return c.nextLocked()
	case pending && (turn || c.termination.owner.opts.HookTiming == HooksAtTermination):
		return c.beginHookLocked()
	case !turn:
		c.result.Phase, c.waitingSince = PhaseWaiting, time.Now()
		return nil // whoever gives it its turn sends it on
	default:
		return c.beginStopLocked()
	}
}
