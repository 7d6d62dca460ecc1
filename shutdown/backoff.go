package shutdown

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	backoffFirst = time.Second
	backoffMost  = 30 * time.Second
)

// backoff spaces the questions to a host that waits for less than it was asked to: a
// second at first, twice as long after each, half a minute at most, and each with a
// jitter of a half.
type backoff struct {
	next time.Duration // 0: backoffFirst
}

// reset forgets the failures.
func (b *backoff) reset() { b.next = 0 }

// delay is how long to wait before the next attempt: within half and the whole
// of the step.
func (b *backoff) delay() time.Duration {
	step := max(b.next, backoffFirst)
	b.next = min(2*step, backoffMost)
	return step/2 + rand.N(step/2+1)
}

// wait waits for the delay, until ctx ends or something wakes it; it tells
// whether ctx goes on.
func (b *backoff) wait(ctx context.Context, wake <-chan struct{}) bool {
	return wait(ctx, b.delay(), wake)
}

// wait waits for some time, until ctx ends or something wakes it; it tells whether ctx
// goes on.
func wait(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
