package graceperiod_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

const (
	longest  = time.Duration(math.MaxInt64)
	shortest = time.Duration(math.MinInt64)
)

// Seconds that do not fit into a time.Duration become the longest or the shortest duration. The conversion does not
// overflow.
func TestDuration(t *testing.T) {
	const most = math.MaxInt64 / int64(time.Second)
	for seconds, want := range map[int64]time.Duration{
		0: 0, 1: time.Second, -1: -time.Second, 90: 90 * time.Second,
		most: time.Duration(most) * time.Second, most + 1: longest, math.MaxInt64: longest,
		-most: -time.Duration(most) * time.Second, -most - 1: shortest, math.MinInt64: shortest,
	} {
		require.Equal(t, want, graceperiod.Duration(seconds), "%d s", seconds)
	}
}

// The timeout is one and a half times the grace period, rounded down to seconds, and at least 10 s. For 9 s it is 13 s,
// not 13.5 s. If it does not fit into a time.Duration, it is the longest one.
func TestKillTimeout(t *testing.T) {
	for seconds, want := range map[int64]time.Duration{
		math.MinInt64: 10 * time.Second, -1: 10 * time.Second, 0: 10 * time.Second, 6: 10 * time.Second,
		7: 10 * time.Second, 8: 12 * time.Second, 9: 13 * time.Second, 30: 45 * time.Second,
		math.MaxInt64/int64(time.Second) - 1: longest, math.MaxInt64: longest,
	} {
		require.Equal(t, want, graceperiod.KillTimeout(seconds), "%d s", seconds)
	}
}

// The whole seconds of the elapsed time are subtracted from the grace period: 30 s - 10.999 s gives 20 s. At least
// 2 s remain for the stop of the container.
func TestRemaining(t *testing.T) {
	for _, c := range []struct {
		name    string
		seconds int64
		elapsed time.Duration
		want    int64
	}{
		{name: "no time elapsed", seconds: 30, elapsed: 0, want: 30},
		{name: "fraction of a second elapsed", seconds: 30, elapsed: 999 * time.Millisecond, want: 30},
		{name: "fraction is truncated", seconds: 30, elapsed: 10*time.Second + 999*time.Millisecond, want: 20},
		{name: "down to the minimum", seconds: 30, elapsed: 28 * time.Second, want: 2},
		{name: "below the minimum", seconds: 30, elapsed: 29 * time.Second, want: 2},
		{name: "more than the grace period elapsed", seconds: 30, elapsed: time.Hour, want: 2},
		{name: "grace period of 0", seconds: 0, elapsed: 0, want: 2},
		{name: "negative grace period", seconds: math.MinInt64, elapsed: longest, want: 2},
		{name: "clock set back", seconds: 30, elapsed: -time.Hour, want: 30},
		{name: "clock set back, max int64", seconds: math.MaxInt64, elapsed: shortest, want: math.MaxInt64},
		{name: "max int64", seconds: math.MaxInt64, elapsed: longest, want: math.MaxInt64 - math.MaxInt64/int64(time.Second)},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, graceperiod.Remaining(c.seconds, c.elapsed))
		})
	}
}

// An agent that restarts gives a terminating pod the time from testTime until its deletionTimestamp, rounded up to seconds. It
// gives at least 1 s and at most the grace period. A pod without a deletionTimestamp has its whole grace period.
func TestLeftOfDeletion(t *testing.T) {
	notDeleted := podWithSpecAndDeletion(seconds(60), nil)
	notDeleted.DeletionTimestamp = &metav1.Time{} // zero, which counts as unset
	for _, c := range []struct {
		name string
		pod  *v1.Pod
		want int64 // in seconds
	}{
		{name: "nil pod", pod: nil, want: 1},
		{name: "not deleted, no spec", pod: &v1.Pod{}, want: 1},
		{name: "not deleted", pod: podWithSpecAndDeletion(seconds(60), nil), want: 60},
		{name: "no timestamp, deletion grace period", pod: podWithSpecAndDeletion(seconds(60), seconds(20)), want: 20},
		{name: "zero timestamp", pod: notDeleted, want: 60},
		{name: "all left", pod: podEndingIn(30*time.Second, seconds(30)), want: 30},
		{name: "some left", pod: podEndingIn(10*time.Second, seconds(30)), want: 10},
		{name: "rounded up", pod: podEndingIn(10*time.Second+time.Nanosecond, seconds(30)), want: 11},
		{name: "clock of the node is behind", pod: podEndingIn(time.Hour, seconds(30)), want: 30},
		{name: "ended now", pod: podEndingIn(0, seconds(30)), want: 1},
		{name: "ended long ago", pod: podEndingIn(-time.Hour, seconds(30)), want: 1},
		{name: "ended a nanosecond ago", pod: podEndingIn(-time.Nanosecond, seconds(30)), want: 1},
		{name: "forced", pod: podEndingIn(0, seconds(0)), want: 1},
		{name: "negative grace period", pod: podEndingIn(time.Hour, seconds(-5)), want: 1},
		{name: "deletion without a grace period", pod: podEndingIn(time.Hour, nil), want: 1},
		{name: "max int64, rounded up", pod: podEndingIn(longest, seconds(math.MaxInt64)), want: math.MaxInt64/int64(time.Second) + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, graceperiod.LeftOfDeletion(c.pod, testTime()))
		})
	}
}

// The deletionTimestamp is so far from now that the difference overflows a time.Duration, or even an int64 of seconds.
// If it is in the future, the whole grace period of 600 s is left. If it is in the past, the minimum of 1 s is left.
func TestLeftOfDeletionDoesNotOverflow(t *testing.T) {
	yearOne, epoch, year9999 := time.Time{}, time.Unix(0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	earliest, latest := time.Unix(math.MinInt64, 0), time.Unix(math.MaxInt64, 9)
	for _, c := range []struct {
		now, timestamp time.Time
		want           int64 // in seconds
	}{
		{now: yearOne, timestamp: year9999, want: 600},
		{now: epoch, timestamp: latest, want: 600},
		{now: earliest, timestamp: latest, want: 600},
		{now: year9999, timestamp: epoch, want: 1},
		{now: latest, timestamp: earliest, want: 1},
	} {
		pod := podWithSpecAndDeletion(nil, seconds(600))
		pod.DeletionTimestamp = &metav1.Time{Time: c.timestamp}
		require.Equal(t, c.want, graceperiod.LeftOfDeletion(pod, c.now), "%v to %v", c.now, c.timestamp)
	}
}
