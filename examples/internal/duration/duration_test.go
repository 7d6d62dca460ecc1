package duration_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
)

// Seconds are rounded to the unit that is shown, and parts that are zero are left out at the end only: 3605 s
// are 1h0m5s.
func TestSeconds(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0s", 0.04: "0s", 2.46: "2.5s", 30: "30s", 59.96: "1m", 90: "1m30s", 600: "10m", 3600: "1h", 3660: "1h1m", 3605: "1h0m5s",
		7200: "2h", 86399: "23h59m59s", 86400: "1d", 90000: "1d1h", 1179405: "13d15h", 1e300: "106751d23h",
	} {
		require.Equal(t, want, duration.Seconds(seconds), seconds)
	}
}

// Of converts seconds. A number that is too large for a time.Duration gives the longest one.
func TestOf(t *testing.T) {
	require.Equal(t, 1500*time.Millisecond, duration.Of(1.5))
	require.Equal(t, time.Duration(math.MaxInt64), duration.Of(int64(math.MaxInt64)))
}
