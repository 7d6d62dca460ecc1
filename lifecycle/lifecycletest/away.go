package lifecycletest

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrAway is the error of each call while the runtime is [Runtime.Away].
var ErrAway = errors.New("the runtime is away")

// absence is when a runtime is away.
type absence struct {
	mu      sync.Mutex
	windows []window
}

// window is a period in which the runtime is away.
type window struct{ from, to time.Time }

// Away makes the runtime unavailable for a period whose start and end are counted from now,
// as if its process had crashed. In that period each call fails with [ErrAway], and calls
// that are under way fail when it starts. The containers go on; a signal that was sent still
// has its effect, but the kill at the end of a failed call's timeout is not sent. Away may
// be called several times, for several periods.
func (r *absence) Away(from, to time.Duration) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.windows = append(r.windows, window{from: now.Add(from), to: now.Add(to)})
}

// limit returns a context that ends with the cause [ErrAway] at the start of the next period
// in which the runtime is away. It reports whether the runtime is away now.
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
