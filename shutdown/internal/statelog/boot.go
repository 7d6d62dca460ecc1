package statelog

import (
	"math"
	"time"
)

// clock converts between times of this process and times since the boot.
type clock struct {
	id      string        // the ID of this boot
	bootErr error         // why id and since are not known; nil: they are
	since   time.Duration // how long after the boot since was read
	at      time.Time     // when since was read
}

// newClock reads the clock of the boot once. boot is Options.Boot.
func newClock(boot func() (string, time.Duration, error)) clock {
	if boot == nil {
		boot = systemBoot
	}
	id, since, err := boot()
	return clock{id: id, bootErr: err, since: max(since, 0), at: time.Now()}
}

// BootErr returns why the boot ID is not known, so that no log is written or read; nil if it is known.
func (c *clock) BootErr() error { return c.bootErr }

// Since converts a time of this process to a time that counts from the boot: time.Unix(0, 0) is the boot. Steps of the
// wall clock do not change the result, and it means the same to the next agent. A time before the boot becomes the first
// nanosecond after the boot. The latest result is 292 years after the boot.
func (c *clock) Since(t time.Time) time.Time {
	sinceRead := t.Sub(c.at)
	switch {
	case sinceRead > math.MaxInt64-c.since:
		return bootTime().Add(math.MaxInt64)
	case sinceRead < -c.since:
		return bootTime().Add(1)
	default:
		return bootTime().Add(c.since + sinceRead)
	}
}

// TimeOf is the inverse of Since.
func (c *clock) TimeOf(t time.Time) time.Time { return c.at.Add(t.Sub(bootTime())).Add(-c.since) }

// bootTime is the time of the boot.
func bootTime() time.Time { return time.Unix(0, 0).UTC() }
