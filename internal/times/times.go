// Package times compares times, waits, and converts a remaining time to the whole seconds of a grace period.
package times

import (
	"context"
	"math"
	"time"
)

// Lag is added to a remaining time before it is rounded down to seconds. Otherwise the few milliseconds of a
// late timer, or of listing the pods, would reduce a grace period of 20 s to 19 s.
const Lag = 100 * time.Millisecond

// WholeSeconds adds [Lag] to remaining and rounds the sum down to seconds. The result is at least 0.
func WholeSeconds(remaining time.Duration) int64 {
	sum := min(remaining, math.MaxInt64-Lag) + Lag // min: the sum must not overflow
	return int64(max(sum, 0) / time.Second)
}

// After returns a channel that delivers a time at t, or that is closed if t has passed. time.After with 0 or less
// would not do: if two goroutines of a testing/synctest bubble read such channels at once, the race detector may crash
// (golang/go#78156).
func After(t time.Time) <-chan time.Time {
	if remaining := time.Until(t); remaining > 0 {
		return time.After(remaining)
	}
	return Passed()
}

// Passed returns a closed channel, which stands for a timer that has fired.
func Passed() <-chan time.Time {
	passed := make(chan time.Time)
	close(passed)
	return passed
}

// Sleep waits for d, and returns nil. If ctx ends first, it returns the cause of that. If d is not positive, Sleep does not wait,
// but returns the cause of a ctx that has ended.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Earlier returns the earlier one of two times. A zero time means that there is no time: Earlier returns the other one.
func Earlier(a, b time.Time) time.Time {
	isBEarlier := !b.IsZero() && b.Before(a)
	if a.IsZero() || isBEarlier {
		return b
	}
	return a
}

// Later returns the later one of two times. A zero time is earlier than all others.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
