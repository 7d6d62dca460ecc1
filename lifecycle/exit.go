package lifecycle

import (
	"context"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Only sleeps are cut by the exit of their container: other hooks may have their work
// outside of it. The sleep of this package's own runner hears of the exit itself, in
// its one goroutine; for that of another runner a second goroutine listens.

// runSleep is a sleep that ends with its container as well. It is called past the
// runner's Run, for the sake of a stack that fits into 2 KiB.
func runSleep(ctx context.Context, id string) stage {
	return func(c *container) stage {
		exited := c.termination.owner.opts.Exits.Exited(id)
		return c.hookReturned(c.termination.owner.sleep.runUntilExit(ctx, exited, c.handler().Sleep.Seconds))
	}
}

// sleepOf gives what sleeps in a runner of this package, nil for another.
func sleepOf(hooks HandlerRunner) *sleepHook {
	if own, ok := hooks.(*handlerRunner); ok {
		return &own.sleep
	}
	return nil
}

// runUntilExit is run that ends with [ContainerExited], too, once exited is closed.
func (h *sleepHook) runUntilExit(ctx context.Context, exited <-chan struct{}, seconds int64) error {
	if !h.on || seconds <= 0 {
		return nil
	}
	began := time.Now()
	select {
	case <-time.After(graceperiod.Duration(seconds)):
		return nil
	case <-exited:
		h.metrics.SleepEndedByExit()
		return ContainerExited
	case <-ctx.Done():
		return h.cut(ctx, graceperiod.Duration(seconds)-time.Since(began))
	}
}

// cutAtExit waits beside the sleep of another runner for the exit of its container, or
// for its own end.
func cutAtExit(ctx context.Context, id string) stage {
	return func(c *container) stage {
		select {
		case <-c.termination.owner.opts.Exits.Exited(id):
			c.termination.mu.Lock()
			defer c.termination.unlock()
			return c.cutHookLocked(ContainerExited)
		case <-ctx.Done():
			return nil
		}
	}
}
