package shutdown

import (
	"context"
	"errors"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

var (
	errCancelled = errors.New("the shutdown was cancelled")
	errOvertaken = errors.New("the host leaves less time than it had announced")
	errTakenOver = errors.New("the node shuts down")
	errHostsEnd  = errors.New("the host goes on")
	errTimeSpent = call.ErrTimeSpent

	errNotDelayed = errors.New("the host did not wait: no lock was held")
)

// halt says whether a drain goes on. Its context ends when no further pod is to be
// signalled.
type halt struct {
	run  context.Context // of Run, or of TerminateAll
	ctx  context.Context
	stop context.CancelCauseFunc
}

func newHalt(run context.Context) halt {
	ctx, stop := context.WithCancelCause(run)
	return halt{run: run, ctx: ctx, stop: stop}
}

// is tells whether no further pod is to be signalled. The end of Run reaches the killer's
// calls and the halt's context in any order, so both are looked at.
func (h halt) is() bool { return h.run.Err() != nil || h.ctx.Err() != nil }

// cancelled tells whether the shutdown was called off.
func (h halt) cancelled() bool { return errors.Is(context.Cause(h.ctx), errCancelled) }

// retired tells whether the shutdown was called off, or another drain goes on with it.
// The end of Run is neither.
func (h halt) retired() bool {
	cause := context.Cause(h.ctx)
	return errors.Is(cause, errCancelled) || errors.Is(cause, errOvertaken) || errors.Is(cause, errTakenOver)
}

// interrupted tells whether Run has ended within the shutdown.
func (h halt) interrupted() bool { return h.run.Err() != nil && !h.retired() }

// wait waits for a time, or for the halt.
func (h halt) wait(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.ctx.Done():
	}
}
