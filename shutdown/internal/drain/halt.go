package drain

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// errHostGoesOn ends the calls of the killer at the end of the drain.
var errHostGoesOn = errors.New("the host goes on")

// unlimited is more time than any timetable has.
const unlimited = time.Duration(math.MaxInt64)

// halt stops the kills of a drain: once ctx has ended, no further pod is signalled.
type halt struct {
	run   context.Context // of Run, or of TerminateAll
	ctx   context.Context
	stop  context.CancelCauseFunc
	stays atomic.Bool  // the host stays
	mu    sync.RWMutex // held to signal a pod, and to stop the kills
}

// end stops the kills: when it returns, no further pod is signalled. stays says that the host stays.
func (h *halt) end(cause error, stays bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if stays {
		h.stays.Store(true)
	}
	h.stop(cause)
}

// unlessHalted calls signal, unless the kills are stopped, and reports whether it has.
func (h *halt) unlessHalted(signal func()) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.halted() {
		return false
	}
	signal()
	return true
}

// halted reports whether no further pod is to be signalled. It looks at both contexts because the
// end of Run reaches them in no fixed order.
func (h *halt) halted() bool { return h.run.Err() != nil || h.ctx.Err() != nil }

// untilHostGoesOn returns a context that ends at a time, unless the host stays. Call end when it is
// not needed any more.
func (h *halt) untilHostGoesOn(at time.Time) (ctx context.Context, end context.CancelCauseFunc) {
	ctx, end = context.WithCancelCause(h.run)
	timer := time.AfterFunc(time.Until(at), func() {
		if !h.stays.Load() {
			end(errHostGoesOn)
		}
	})
	context.AfterFunc(ctx, func() { timer.Stop() })
	return ctx, end
}

// wait waits until a time or until the kills are stopped.
func (h *halt) wait(until time.Time) {
	select {
	case <-time.After(time.Until(until)):
	case <-h.ctx.Done():
	}
}
