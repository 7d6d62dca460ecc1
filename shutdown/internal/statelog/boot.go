package statelog

import (
	"math"
	"time"
)

// clock converts between times of this process and times since the boot.
type clock struct {
	bootID  string        // the ID of this boot
	bootErr error         // why bootID and bootAge are not known; nil: they are
	bootAge time.Duration // the time from the boot to readAt
	readAt  time.Time     // when bootID and bootAge were read
}

// newClock asks boot (Options.Boot) once for the ID of this boot and the time since it began. A nil boot stands for
// systemBoot.
func newClock(boot func() (string, time.Duration, error)) clock {
	if boot == nil {
		boot = systemBoot
	}
	id, age, err := boot()
	return clock{bootID: id, bootErr: err, bootAge: max(age, 0), readAt: time.Now()}
}

// BootErr returns why the boot ID is not known, so that no log is written or read; nil if it is known.
func (c *clock) BootErr() error { return c.bootErr }

// SinceBoot converts a time of this process to a time that counts from the boot: time.Unix(0, 0) is the boot. Steps of the
// wall clock do not change the result, and it means the same to the next agent. A time before the boot becomes the first
// nanosecond after the boot. The latest result is 292 years after the boot.
func (c *clock) SinceBoot(t time.Time) time.Time {
	sinceRead := t.Sub(c.readAt)
	switch {
	case sinceRead > math.MaxInt64-c.bootAge:
		return bootTime().Add(math.MaxInt64)
	case sinceRead < -c.bootAge:
		return bootTime().Add(1)
	default:
		return bootTime().Add(c.bootAge + sinceRead)
	}
}

// TimeOf is the inverse of SinceBoot: it converts a time that counts from the boot to a time of this process.
func (c *clock) TimeOf(t time.Time) time.Time { return c.readAt.Add(t.Sub(bootTime())).Add(-c.bootAge) }

// bootTime is the time of the boot.
func bootTime() time.Time { return time.Unix(0, 0).UTC() }
