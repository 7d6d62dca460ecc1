package store

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// stepped returns what [time.Now] would return instead of t if the wall clock had been stepped
// before: a time with another wall clock reading and the same monotonic one. It changes the
// representation of t, because a test cannot step the clock of the host, and the times in a
// bubble have no monotonic reading.
func stepped(t time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << 30 //nolint:gosec // the wall clock's seconds begin at bit 30 if there is a monotonic reading
	return t
}

// A step of the wall clock, while an agent runs or before it is started, does not change what the
// times of a record mean.
func TestWallClockIsStepped(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		b := New(Options{Dir: "any", Boot: func() (string, time.Duration, error) { return "one", time.Hour, nil }})
		later := stepped(b.at.Add(10*time.Second), step)
		require.Equal(t, step+10*time.Second, later.Round(0).Sub(b.at.Round(0)), "by the wall clock")
		require.Equal(t, time.Hour+10*time.Second, b.SinceBoot(later))
		require.Zero(t, b.TimeOf(time.Hour+10*time.Second).Sub(later))
	}
}

// The clock of this machine is the same for the next agent, and runs.
func TestSystemBoot(t *testing.T) {
	first := New(Options{Dir: "any"})
	if errors.Is(first.err, errors.ErrUnsupported) {
		t.Skip("this system cannot tell one boot from another")
	}
	require.NoError(t, first.err)
	require.Len(t, first.id, 36)
	second := New(Options{Dir: "any"})
	require.Equal(t, first.id, second.id)
	require.Positive(t, first.since)
	require.GreaterOrEqual(t, second.since, first.since)
	now := time.Now()
	require.InDelta(t, first.SinceBoot(now), second.SinceBoot(now), float64(time.Second))
}
