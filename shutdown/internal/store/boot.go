package store

import (
	"math"
	"time"
)

// clock converts between the clock of this process and that of the boot. It is zero where nothing is
// stored.
type clock struct {
	id    string
	err   error
	since time.Duration // the time from the boot to at
	at    time.Time     // when since was read
}

// BootID returns the ID of this boot; "" if it is not known, or nothing is stored.
func (c *clock) BootID() string { return c.id }

// BootErr returns why the boot cannot be identified, so that no record is stored; nil if it can.
func (c *clock) BootErr() error { return c.err }

// SinceBoot converts a time of this process to the monotonic time since the boot, which is the
// same for the next agent. It saturates: the end of a host without a limit lies in three hundred
// years, and a time before the boot counts as its first nanosecond.
func (c *clock) SinceBoot(t time.Time) time.Duration {
	after := t.Sub(c.at)
	switch {
	case after > math.MaxInt64-c.since:
		return math.MaxInt64
	case after < -c.since:
		return 1
	default:
		return c.since + after
	}
}

// TimeOf is the inverse of SinceBoot.
func (c *clock) TimeOf(since time.Duration) time.Time { return c.at.Add(since - c.since) }
