package lifecycletest

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrAway is the error of each call while the runtime is unavailable ([Runtime.Away]).
var ErrAway = errors.New("the runtime is unavailable")

// absence has the periods in which a runtime is unavailable.
type absence struct {
	mu      sync.Mutex
	windows []window
}

type window struct{ from, to time.Time }

// Away makes the runtime unavailable from the durations from to to after now, as if its
// process had crashed. In that period each call fails with [ErrAway], and calls that are
// already running fail when it starts. The containers keep running: a sent signal still has
// its effect, but the kill at the end of a failed call's timeout is not sent. Call Away
// repeatedly for several periods.
func (r *absence) Away(from, to time.Duration) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.windows = append(r.windows, window{from: now.Add(from), to: now.Add(to)})
}

// limit returns a context that ends with the cause [ErrAway] at the start of the next period,
// and reports whether the runtime is unavailable now.
func (r *absence) limit(ctx context.Context) (limited context.Context, cancel context.CancelFunc, isAway bool) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	var next time.Time
	for _, w := range r.windows {
		isAway = isAway || !now.Before(w.from) && now.Before(w.to)
		if w.from.After(now) && (next.IsZero() || w.from.Before(next)) {
			next = w.from
		}
	}
	if next.IsZero() {
		return ctx, func() {}, isAway
	}
	limited, cancel = context.WithDeadlineCause(ctx, next, ErrAway)
	return limited, cancel, isAway
}
