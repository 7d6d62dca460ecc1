package shutdown

import (
	"context"
	"errors"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

var (
	errCancelled  = errors.New("the shutdown was cancelled")
	errOvertaken  = errors.New("the host leaves less time than it had announced")
	errTakenOver  = errors.New("the node shuts down")
	errHostGoesOn = errors.New("the host goes on")
	errTimeSpent  = call.ErrTimeSpent

	errNotDelayed = errors.New("the host did not wait: no lock was held")
)

// halt stops the kills of a drain: once ctx has ended, no further pod is signalled. The cause of
// that end says why.
type halt struct {
	run  context.Context // of Run, or of TerminateAll
	ctx  context.Context
	stop context.CancelCauseFunc
}

func newHalt(run context.Context) halt {
	ctx, stop := context.WithCancelCause(run)
	return halt{run: run, ctx: ctx, stop: stop}
}

// halted reports whether no further pod is to be signalled. It looks at both contexts because the
// end of Run reaches them in no fixed order.
func (h halt) halted() bool { return h.run.Err() != nil || h.ctx.Err() != nil }

// cancelled reports whether the shutdown was cancelled.
func (h halt) cancelled() bool { return errors.Is(context.Cause(h.ctx), errCancelled) }

// cancelledOrReplaced reports whether the shutdown was cancelled or another drain has replaced
// this one. The end of Run does not count.
func (h halt) cancelledOrReplaced() bool {
	cause := context.Cause(h.ctx)
	return errors.Is(cause, errCancelled) || errors.Is(cause, errOvertaken) || errors.Is(cause, errTakenOver)
}

// interrupted reports whether the end of Run has stopped the drain.
func (h halt) interrupted() bool { return h.run.Err() != nil && !h.cancelledOrReplaced() }

// wait waits until a time or until the kills are stopped.
func (h halt) wait(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.ctx.Done():
	}
}
