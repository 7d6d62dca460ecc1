package lifecycle

import (
	"context"
	"time"
)

// backoff is the pause before a failed call is repeated. It doubles from call to call.
type backoff time.Duration

// The shortest and the longest pause.
const (
	minRetry = 100 * time.Millisecond
	maxRetry = time.Second
)

// next returns the pause before the next call, and doubles the pause after that.
func (r *backoff) next() time.Duration {
	pause := max(time.Duration(*r), minRetry)
	*r = backoff(min(2*pause, maxRetry))
	return pause
}

// sleepContext waits for d, or until ctx ends.
func sleepContext(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
