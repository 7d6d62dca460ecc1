// Package times compares moments and turns the time that is left into the whole seconds of a grace
// period. It is pure and may be used concurrently.
package times

import (
	"math"
	"time"
)

// Lag is how late a timer, or a goroutine that waits for one, may be without costing a whole second of
// a grace period. Reading the list of pods takes such a moment too, after which a pod of 20 s would be
// granted 19 whole seconds.
const Lag = 100 * time.Millisecond

// WholeSeconds returns the whole seconds of a duration, at least 0. What lacks of a whole second, Lag at
// most, has been before.
func WholeSeconds(left time.Duration) int64 {
	return int64(max(min(left, math.MaxInt64-Lag)+Lag, 0) / time.Second)
}

// Earlier returns the earlier one of two times. A zero time is none.
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
