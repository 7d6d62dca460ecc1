package lifecycle

import "time"

// backoff is the pause before a failed call is repeated. It doubles each time, between the limits below.
// Set it to 0 after a success.
type backoff time.Duration

// The limits of the pause.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = time.Second
)

// next returns the pause before the next call, and doubles the one after it.
func (b *backoff) next() time.Duration {
	pause := max(time.Duration(*b), shortestPause)
	*b = backoff(min(2*pause, longestPause))
	return pause
}
