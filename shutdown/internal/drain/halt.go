package drain

import (
	"context"
	"math"
	"time"
)

// unlimited is more time than any timetable has.
const unlimited = time.Duration(math.MaxInt64)

// halt stops the kills of a drain: once ctx has ended, no further pod is signalled.
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

// wait waits until a time or until the kills are stopped.
func (h halt) wait(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.ctx.Done():
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
