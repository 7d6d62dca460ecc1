// Package times compares times, and converts a remaining time to the whole seconds of a grace period.
package times

import (
	"math"
	"time"
)

// Lag is added to a remaining time before it is rounded down to seconds. Otherwise the few milliseconds of a
// late timer, or of listing the pods, would reduce a grace period of 20 s to 19 s.
const Lag = 100 * time.Millisecond

// WholeSeconds adds [Lag] to remaining and rounds the sum down to seconds. The result is at least 0.
func WholeSeconds(remaining time.Duration) int64 {
	return int64(max(min(remaining, math.MaxInt64-Lag)+Lag, 0) / time.Second)
}

// Shortest is the duration of a timer for a time that has passed. In a bubble of testing/synctest a select
// with a timer of 0 or less crashes the race detector of Go 1.26 on a busy machine.
const Shortest = time.Nanosecond

// Until returns the duration of a timer that fires at t: at least [Shortest].
func Until(t time.Time) time.Duration { return max(time.Until(t), Shortest) }

// Earlier returns the earlier one of two times. A zero time is ignored.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Later returns the later one of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
