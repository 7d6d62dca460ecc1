package lifecycletest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

// ErrAway is the error of the calls that [Runtime.Away] lists while the runtime is unavailable.
var ErrAway = errors.New("the runtime is unavailable")

// absence has the periods in which a runtime is unavailable, past and future.
type absence struct {
	mu      sync.Mutex
	periods []period
}

// period begins at from and ends just before to.
type period struct{ from, to time.Time }

// Away makes the runtime unavailable for a period, as if its process had crashed. The period lasts from
// now+from to now+to. During the period each Running, StopContainer and RunInContainer fails with [ErrAway],
// and such calls in progress fail when it begins. The containers keep running: a signal that was sent still has
// its effect, but the kill at the end of a failed call's timeout is not sent. Each call of Away adds a period.
func (r *absence) Away(from, to time.Duration) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.periods = append(r.periods, period{from: now.Add(from), to: now.Add(to)})
}

// endWhenAway returns a context for a call of the runtime that ends with the cause [ErrAway] when the next period of
// [Runtime.Away] begins, so that the call fails then. isAway says that the runtime is unavailable already: the call
// must fail at once. The caller must call cancel.
func (r *absence) endWhenAway(ctx context.Context) (limited context.Context, cancel context.CancelFunc, isAway bool) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	var nextStart time.Time // of a period; zero: there is no later one
	for _, p := range r.periods {
		switch {
		case p.from.After(now):
			nextStart = times.Earlier(nextStart, p.from)
		case p.to.After(now):
			isAway = true
		}
	}
	if nextStart.IsZero() {
		return ctx, func() {}, isAway
	}
	limited, cancel = context.WithDeadlineCause(ctx, nextStart, ErrAway)
	return limited, cancel, isAway
}
