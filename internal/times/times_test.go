package times_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/times"
)

// WholeSeconds adds 100 ms and rounds down, so 900 ms is 1 s, and a nanosecond less is 0 s. Negative durations are 0 s.
// The longest and the shortest duration do not overflow.
func TestWholeSeconds(t *testing.T) {
	for remaining, want := range map[time.Duration]int64{
		math.MinInt64: 0, -time.Hour: 0, 0: 0,
		900*time.Millisecond - 1: 0, 900 * time.Millisecond: 1, time.Second: 1, 1900*time.Millisecond - 1: 1,
		math.MaxInt64:                 math.MaxInt64 / int64(time.Second),
		math.MaxInt64 - times.Lag + 1: math.MaxInt64 / int64(time.Second), // with the 100 ms (Lag) it would overflow by 1 ns
	} {
		require.Equal(t, want, times.WholeSeconds(remaining), remaining)
	}
}

// A zero time means that there is no time. Earlier ignores it. Later needs no such rule, because a zero time is before all
// others.
func TestEarlierAndLater(t *testing.T) {
	none, one, two := time.Time{}, time.Unix(1, 0), time.Unix(2, 0)
	for _, test := range []struct{ a, b, earlier, later time.Time }{
		{a: one, b: two, earlier: one, later: two},
		{a: two, b: one, earlier: one, later: two},
		{a: one, b: none, earlier: one, later: one},
		{a: none, b: one, earlier: one, later: one},
		{a: none, b: none, earlier: none, later: none},
	} {
		require.Equal(t, test.earlier, times.Earlier(test.a, test.b))
		require.Equal(t, test.later, times.Later(test.a, test.b))
	}
}
