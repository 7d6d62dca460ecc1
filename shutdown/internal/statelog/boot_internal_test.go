package statelog

import (
	"errors"
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// stepped returns the time that [time.Now] would return instead of t if the wall clock had been stepped. It
// changes the representation of t, because a test cannot step the host's clock, and times in a bubble
// have no monotonic reading.
func stepped(t time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << 30 //nolint:gosec // the wall clock's seconds begin at bit 30 if there is a monotonic reading
	return t
}

// bootedAnHourAgo is an Options.Boot of a boot that was an hour ago.
func bootedAnHourAgo() (id string, since time.Duration, err error) { return "one", time.Hour, nil }

// The agent started an hour after the boot. A step of the wall clock, backward or forward, 10 s later does not change the times in the
// log: they are still 3610 s after the boot.
func TestWallClockStepsDoNotMoveTimes(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		c := newClock(bootedAnHourAgo)
		later := stepped(c.readAt.Add(10*time.Second), step)
		require.Equal(t, step+10*time.Second, later.Round(0).Sub(c.readAt.Round(0)), "the wall clock was stepped")
		require.Equal(t, time.Unix(3610, 0).UTC(), c.SinceBoot(later))
		require.Zero(t, c.TimeOf(time.Unix(3610, 0)).Sub(later), "TimeOf converts back")
	}
}

// SinceBoot gives times as if the boot had been at Unix time 0. Times before the boot become the first nanosecond after it.
// Times that are more than 292 years after it, and do not fit, become the last nanosecond that does. TimeOf converts back.
// Neither overflows.
func TestClockSaturates(t *testing.T) {
	first, last := time.Unix(0, 1).UTC(), time.Unix(0, math.MaxInt64).UTC()
	c := newClock(bootedAnHourAgo)
	require.Equal(t, first, c.SinceBoot(c.readAt.Add(-2*time.Hour)), "before the boot")
	require.Equal(t, first, c.SinceBoot(time.Time{}), "long before the boot")
	require.Equal(t, last, c.SinceBoot(c.readAt.Add(math.MaxInt64)), "an hour too late")
	require.True(t, c.TimeOf(last).After(c.readAt.Add(290*365*24*time.Hour)))
	require.True(t, c.TimeOf(time.Time{}).Before(c.readAt))
}

// The boot ID cannot be read, and the time since the boot is invalid (-1). Times then count from the start of the process, so
// 7 s after the start is 7 s.
func TestClockWithoutABootIDCountsFromTheStart(t *testing.T) {
	c := newClock(func() (string, time.Duration, error) { return "", -1, errors.ErrUnsupported })
	require.Equal(t, time.Unix(7, 0).UTC(), c.SinceBoot(c.readAt.Add(7*time.Second)))
}

// Two agents on this machine have the same boot ID, and the same time since the boot.
func TestAgentsOfOneBootHaveTheSameClock(t *testing.T) {
	first := newClock(nil)
	if errors.Is(first.bootErr, errors.ErrUnsupported) {
		t.Skip("this system cannot tell one boot from another")
	}
	require.NoError(t, first.bootErr)
	require.Len(t, first.bootID, 36)
	second := newClock(nil)
	require.Equal(t, first.bootID, second.bootID)
	require.Positive(t, first.bootAge)
	require.GreaterOrEqual(t, second.bootAge, first.bootAge)
	now := time.Now()
	require.InDelta(t, 0, second.SinceBoot(now).Sub(first.SinceBoot(now)), float64(time.Second))
}
