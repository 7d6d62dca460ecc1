package lifecycletest

import (
	"context"
	"errors"
	"time"
)

// ErrAway is what a runtime gives that is [Runtime.Away].
var ErrAway = errors.New("the runtime is away")

// window is a time in which a runtime is away.
type window struct{ from, to time.Time }

// Away takes the runtime away, as the end of its process does: from one moment until
// another, counted from now, each call fails with [ErrAway], and calls that are under
// way fail when it begins. Containers live on, with the signals that they have been
// sent; the kill at the end of a failed call's timeout does not come. It may be called
// several times, before its moments.
func (r *Runtime) Away(from, to time.Duration) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.windows = append(r.windows, window{from: now.Add(from), to: now.Add(to)})
}

// awayLocked tells whether the runtime is away now.
func (r *Runtime) awayLocked() bool {
	now := time.Now()
	for _, w := range r.windows {
		if !now.Before(w.from) && now.Before(w.to) {
			return true
		}
	}
	return false
}

// untilAway ends a context with [ErrAway] when the runtime goes away next.
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
