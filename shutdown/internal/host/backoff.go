package host

import (
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
