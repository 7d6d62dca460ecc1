package statelog

import (
	"errors"
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// stepped returns the time that [time.Now] would return instead of t after a step of the wall clock. It
// changes the representation of t, because a test cannot step the host's clock and times in a bubble
// have no monotonic reading.
func stepped(t time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << 30 //nolint:gosec // the wall clock's seconds begin at bit 30 if there is a monotonic reading
	return t
}

// Steps of the wall clock, before or after the agent starts, do not change times of the log.
func TestWallClockStepsDoNotMoveTimes(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		c := newClock(func() (string, time.Duration, error) { return "one", time.Hour, nil })
		later := stepped(c.at.Add(10*time.Second), step)
		require.Equal(t, step+10*time.Second, later.Round(0).Sub(c.at.Round(0)), "by the wall clock")
		require.Equal(t, time.Unix(3610, 0).UTC(), c.Since(later))
		require.Zero(t, c.TimeOf(time.Unix(3610, 0)).Sub(later))
	}
}

// Times outside the range of the clock become its ends.
func TestClockSaturates(t *testing.T) {
	c := newClock(func() (string, time.Duration, error) { return "one", time.Hour, nil })
	require.Equal(t, time.Unix(0, 1).UTC(), c.Since(c.at.Add(-2*time.Hour)))
	require.Equal(t, time.Unix(0, 1).UTC(), c.Since(time.Time{}))
	require.Equal(t, time.Unix(0, math.MaxInt64).UTC(), c.Since(c.at.Add(math.MaxInt64)))
	require.True(t, c.TimeOf(time.Unix(0, math.MaxInt64)).After(c.at.Add(290*365*24*time.Hour)))
	require.True(t, c.TimeOf(time.Time{}).Before(c.at))
	none := newClock(func() (string, time.Duration, error) { return "", -1, errors.ErrUnsupported })
	require.Equal(t, time.Unix(7, 0).UTC(), none.Since(none.at.Add(7*time.Second)), "without a boot it counts from the start of the process")
}

// The clock of this machine runs, and is the same for the next agent.
func TestSystemBoot(t *testing.T) {
	first := newClock(nil)
	if errors.Is(first.err, errors.ErrUnsupported) {
		t.Skip("this system cannot tell one boot from another")
	}
	require.NoError(t, first.err)
	require.Len(t, first.id, 36)
	second := newClock(nil)
	require.Equal(t, first.id, second.id)
	require.Positive(t, first.since)
	require.GreaterOrEqual(t, second.since, first.since)
	now := time.Now()
	require.InDelta(t, 0, second.Since(now).Sub(first.Since(now)), float64(time.Second))
}
