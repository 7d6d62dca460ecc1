package store

import (
	"math"
	"time"
)

// boot converts between the clock of this process and that of the boot.
type boot struct {
	id    string        // "": not known
	err   error         // why the boot cannot be identified; nil: it can
	since time.Duration // the time from the boot to at
	at    time.Time     // when since was read
}

func readBoot(read func() (id string, since time.Duration, err error)) boot {
	var b boot
	b.id, b.since, b.err = read()
	b.at = time.Now()
	return b
}

// sinceBoot returns the time from the boot to t, at least one nanosecond if t is before the boot.
func (b *boot) sinceBoot(t time.Time) time.Duration {
	after := t.Sub(b.at)
	switch {
	case after > math.MaxInt64-b.since:
		return math.MaxInt64
	case after < -b.since:
		return 1
	default:
		return b.since + after
	}
}

// timeOf is the inverse of sinceBoot.
func (b *boot) timeOf(since time.Duration) time.Time { return b.at.Add(since - b.since) }
