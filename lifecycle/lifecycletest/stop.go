package lifecycletest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// StopContainer sends the stop signal, waits timeoutSeconds for the container to end, and
// then kills it; with a timeout of 0 or less it kills at once. If ctx ends first, it returns
// the error of ctx and does not kill. For an unknown container the error wraps
// [lifecycle.ErrContainerNotFound], or is nil after [Runtime.AnswerNilForUnknown]. While the
// runtime is [Runtime.Away] it returns [ErrAway].
func (r *Runtime) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	r.mu.Lock()
	stop := len(r.stops)
	r.stops = append(r.stops, Stop{ID: id, TimeoutSeconds: timeoutSeconds, At: time.Now()})
	c, forgiving := r.containers[id], r.forgiving
	away := r.awayLocked()
	hang, fail := c.nextFault()
	r.mu.Unlock()
	ctx, cancel := r.untilAway(ctx)
	defer cancel()

	var err error
	switch {
	case away:
		err = ErrAway
	case c == nil && forgiving:
	case c == nil:
		err = fmt.Errorf("failed to find container %q: %w", id, lifecycle.ErrContainerNotFound)
	case hang:
		err = r.hang(ctx, c)
	case fail:
		err = c.stopErr()
	default:
		err = r.stop(ctx, c, timeoutSeconds)
	}
	if errors.Is(context.Cause(ctx), ErrAway) && err != nil {
		err = ErrAway
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stops[stop].Returned, r.stops[stop].Err = time.Now(), err
	return err
}

// nextFault counts a call, and reports whether the script makes it hang or fail.
func (c *container) nextFault() (hang, fail bool) {
	if c == nil {
		return false, false
	}
	c.calls++
	if c.script.HangStops < 0 || c.calls <= c.script.HangStops {
		return true, false
	}
	return false, c.script.FailStops < 0 || c.calls <= c.script.HangStops+c.script.FailStops
}

// stopErr returns the error of a scripted failure.
func (c *container) stopErr() error {
	if c.script.StopErr != nil {
		return c.script.StopErr
	}
	return ErrScripted
}

// hang waits for [Runtime.Release] or, unless the script ignores it, for the end of ctx.
func (r *Runtime) hang(ctx context.Context, c *container) error {
	ended := ctx.Done()
	if c.script.HangDeaf {
		ended = nil
	}
	select {
	case <-ended:
		return ctx.Err()
	case <-r.released:
		return c.stopErr()
	}
}

// stop handles a call that neither hangs nor fails.
func (r *Runtime) stop(ctx context.Context, c *container, timeoutSeconds int64) error {
	if timeoutSeconds <= 0 {
		return r.kill(c)
	}
	r.term(c)
	timeout := time.NewTimer(graceperiod.Duration(timeoutSeconds))
	defer timeout.Stop()
	select {
	case <-c.exited:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return r.kill(c)
	}
}

// kill ends a container, and says so if its script does.
func (r *Runtime) kill(c *container) error {
	r.end(c, ByKill)
	if c.script.SaysKilled {
		return lifecycle.ErrKilled
	}
	return nil
}

// term sends the stop signal. Only the first one has an effect.
func (r *Runtime) term(c *container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.gone || c.termed {
		return
	}
	c.termed = true
	signal := cmp.Or(c.script.StopSignal, v1.SIGTERM)
	r.signals = append(r.signals, Signal{ID: c.id, Signal: signal, At: time.Now()})
	switch {
	case c.script.IgnoreTerm:
	case c.script.ExitAfterTerm <= 0:
		r.endLocked(c, ByTerm)
	default:
		c.byTerm = time.AfterFunc(c.script.ExitAfterTerm, func() { r.end(c, ByTerm) })
	}
}
