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

// backoff spaces the repeated requests to a host that grants less delay than it was asked for: 1
// s at first, doubling to 30 s, with a jitter of half the step.
type backoff struct {
	next time.Duration // 0: backoffFirst
}

// reset starts again with the first step.
func (b *backoff) reset() { b.next = 0 }

// delay returns the wait before the next attempt, between half the step and the whole step.
func (b *backoff) delay() time.Duration {
	step := max(b.next, backoffFirst)
	b.next = min(2*step, backoffMost)
	return step/2 + rand.N(step/2+1)
}

// wait waits for the next delay, or until ctx ends or wake is signalled. It reports whether ctx
// is still alive.
func (b *backoff) wait(ctx context.Context, wake <-chan struct{}) bool {
	return wait(ctx, b.delay(), wake)
}

// wait waits for d, or until ctx ends or wake is signalled. It reports whether ctx is still
// alive.
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
