package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// stop is what is asked of the runtime to end one container.
type stop struct {
	ctx      context.Context // ended once the container has ended
	cancel   context.CancelFunc
	began    time.Time
	killAt   time.Time   // when the runtime has been asked to kill, at the latest
	silentAt time.Time   // when a runtime that has not answered is silent
	silence  *time.Timer // comes then
	inFlight int         // StopContainer calls without an answer
	forced   bool        // the one with timeout 0 was made
	ended    bool        // the container has ended, or cannot be helped
	errs     []error     // of calls that failed
}

// stopError is why a container did not end as it should. It is put into words only
// when somebody asks: an agent that stops has one for each of its containers.
type stopError struct {
	name, id string
	errs     []error
}

// Error names the container.
func (e *stopError) Error() string {
	return fmt.Sprintf("failed to stop container %q (id=%q): %v", e.name, e.id, errors.Join(e.errs...))
}

// Unwrap gives all that went wrong.
func (e *stopError) Unwrap() []error { return e.errs }

// beginStopLocked is the stage of the stop.
func (c *container) beginStopLocked() stage {
	c.result.Phase = PhaseStopping
	if c.restart != nil {
		c.restart()
	}
	c.stop.ctx, c.stop.cancel = context.WithCancel(c.termination.life)
	c.stop.began = time.Now()
	return c.askLocked(c.termination.leftLocked())
}

// askLocked is a StopContainer call. The silence of the runtime is measured by the
// call that asks for the earliest end.
func (c *container) askLocked(timeoutSeconds int64) stage {
	timeout := graceperiod.Duration(timeoutSeconds)
	slack := c.termination.owner.opts.StopSlack
	silence := min(timeout, math.MaxInt64-slack) + slack
	now := time.Now()
	c.stop.inFlight++
	c.stop.killAt, c.stop.silentAt = now.Add(timeout), now.Add(silence)
	if c.stop.silence == nil {
		c.stop.silence = time.AfterFunc(silence, c.silent)
	} else {
		c.stop.silence.Reset(silence)
	}
	id, ctx := c.result.ID, c.stop.ctx
	return func(c *container) stage {
		err := c.termination.owner.opts.Runtime.StopContainer(ctx, id, timeoutSeconds)
		c.termination.mu.Lock()
		defer c.termination.unlock()
		return c.answeredLocked(timeoutSeconds, err)
	}
}

// overtakeLocked asks for an earlier end of a stop in flight, beside it.
func (c *container) overtakeLocked() {
	if c.stop.inFlight == 0 || c.stop.ended || c.stop.forced {
		return
	}
	timeout := c.termination.leftLocked()
	if time.Now().Add(graceperiod.Duration(timeout)).Before(c.stop.killAt) {
		c.termination.goLocked(c, c.askLocked(timeout))
	}
}

// answeredLocked takes the answer of a StopContainer call; the first success ends
// all of them, and the failure of the last one has the container killed, once.
func (c *container) answeredLocked(timeoutSeconds int64, err error) stage {
	c.stop.inFlight--
	switch {
	case c.stop.ended:
	case err == nil:
		c.endLocked(c.successLocked())
	case errors.Is(err, ErrContainerNotFound):
		c.endLocked(NotFound)
	default:
		c.stop.errs = append(c.stop.errs, fmt.Errorf("StopContainer with timeout %d failed: %w", timeoutSeconds, err))
		return c.forceLocked()
	}
	return nil
}

// forceLocked has a container killed whose calls have all failed; if that was one
// of them, it cannot be helped.
func (c *container) forceLocked() stage {
	switch {
	case c.stop.inFlight > 0:
		return nil
	case c.stop.forced:
		c.endLocked(RuntimeStuck)
		return nil
	default:
		c.stop.forced = true
		return c.askLocked(0)
	}
}

// silent is called when the runtime has not answered in time.
func (c *container) silent() {
	c.termination.mu.Lock()
	defer c.termination.unlock()
	if c.stop.ended || time.Now().Before(c.stop.silentAt) {
		return // asked again in the moment that the timer fired
	}
	c.stop.errs = append(c.stop.errs, fmt.Errorf("StopContainer was silent for %v", time.Since(c.stop.began)))
	if c.stop.forced {
		c.endLocked(RuntimeStuck)
		return
	}
	c.stop.forced = true
	c.termination.goLocked(c, c.askLocked(0))
}

// successLocked is the outcome of a stop that has succeeded. The runtime does not
// say whether it had to kill, but it does so when its timeout is over: a stop that
// lasted that long is taken for a kill.
func (c *container) successLocked() Outcome {
	switch {
	case c.stop.forced:
		return Forced
	case time.Now().Before(c.stop.killAt):
		return Graceful
	default:
		c.termination.deferLocked(c.termination.owner.opts.Metrics.ContainerKilledAfterGrace)
		return GraceExceeded
	}
}

// endLocked ends a container, and lets those go who wait for it.
func (c *container) endLocked(outcome Outcome) {
	c.stop.ended, c.starting = true, false
	c.result.Outcome = outcome
	if !c.stop.began.IsZero() {
		c.result.Stopping = time.Since(c.stop.began)
		c.stop.silence.Stop()
		c.stop.cancel()
	}
	if len(c.stop.errs) > 0 {
		c.result.Err = errors.Join(c.result.Err, &stopError{name: c.result.Name, id: c.result.ID, errs: c.stop.errs})
	}
	c.termination.giveTurnsLocked()
	c.completeLocked()
}

// completeLocked ends what is done about a container, once it has ended and its
// hook has returned or is abandoned.
func (c *container) completeLocked() {
	if !c.stop.ended || c.result.Phase == PhaseEnded || !c.awaitHookLocked() {
		return
	}
	c.result.Phase = PhaseEnded
	if c.ended != nil {
		close(c.ended)
	}
	c.termination.settleLocked()
}
