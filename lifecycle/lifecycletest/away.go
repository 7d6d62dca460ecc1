package lifecycletest

import (
	"context"
	"errors"
	"time"
)

// ErrAway is the error of each call while the runtime is [Runtime.Away].
var ErrAway = errors.New("the runtime is away")

// window is a period in which the runtime is away.
type window struct{ from, to time.Time }

// Away makes the runtime unavailable for a period whose start and end are counted from now,
// as if its process had crashed. In that period each call fails with [ErrAway], and calls
// that are under way fail when it starts. The containers go on; a signal that was sent still
// has its effect, but the kill at the end of a failed call's timeout is not sent. Away may
// be called several times, for several periods.
func (r *Runtime) Away(from, to time.Duration) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.windows = append(r.windows, window{from: now.Add(from), to: now.Add(to)})
}

// awayLocked reports whether the runtime is away now. The mutex is held.
func (r *Runtime) awayLocked() bool {
	now := time.Now()
	for _, w := range r.windows {
		if !now.Before(w.from) && now.Before(w.to) {
			return true
		}
	}
	return false
}

// untilAway returns a context that ends with the cause [ErrAway] at the start of the next
// period in which the runtime is away.
func (r *Runtime) untilAway(ctx context.Context) (context.Context, context.CancelFunc) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	var next time.Time
	for _, w := range r.windows {
		if w.from.After(now) && (next.IsZero() || w.from.Before(next)) {
			next = w.from
		}
	}
	if next.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, next, ErrAway)
}
