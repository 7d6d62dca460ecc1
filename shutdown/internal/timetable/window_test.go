package timetable_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// windowTimes returns Ready, KillsEnd, UnmountsEnd and End of a window, as durations from the event of the drain.
func windowTimes(w timetable.Window) (all []time.Duration) {
	for _, at := range []time.Time{w.Ready, w.KillsEnd, w.UnmountsEnd, w.End} {
		all = append(all, at.Sub(received()))
	}
	return all
}

// A bucket that begins as late as planned gets the time of the schedule: 1 s for NotReady, 20 s or 10 s for the kills,
// 2 s for volumes, 1 s for final statuses. The first bucket is planned for 2 s after the event, when publishing is over,
// and the second for 26 s. If the second bucket begins at 7 s, its pods also get the 19 s that the first one has left.
func TestAnEarlyBucketGetsUnusedTime(t *testing.T) {
	tt := table(time.Minute, plan.Options{Steps: allSteps()})
	latest := tt.Window(0, after(2*second))
	require.Equal(t, []time.Duration{3 * second, 23 * second, 25 * second, 26 * second}, windowTimes(latest))
	require.Equal(t, int64(20), latest.Seconds(pod(99), latest.Ready))

	high := tt.Window(1, after(26*second))
	require.Equal(t, []time.Duration{27 * second, 37 * second, 39 * second, 40 * second}, windowTimes(high))
	require.Equal(t, int64(10), high.Seconds(pod(99), high.Ready))

	early := tt.Window(1, after(7*second))
	require.Equal(t, []time.Duration{8 * second, 37 * second, 39 * second, 40 * second}, windowTimes(early))
	require.Equal(t, int64(10+19), early.Seconds(pod(99), early.Ready))
	require.Equal(t, int64(10+19+1), early.Seconds(pod(99), after(7*second)), "NotReady took no time")
	require.Equal(t, int64(10), early.Seconds(pod(), early.Ready), "a pod without a grace period gets its bucket's seconds")
	require.Equal(t, int64(3), early.Seconds(pod(3), early.Ready))
	require.Zero(t, early.Seconds(pod(-3), early.Ready))
}

// With NoRollOver a bucket gets only its own time, counted from its start, even if it starts early: 1 s for NotReady, 20 s
// for the kills, 2 s for volumes, and 1 s for final statuses. It ends with the drain at the latest: if the second bucket,
// planned for 26 s to 40 s, starts at 31 s, its kills have 6 s instead of 10 s.
func TestWindowWithoutRollOver(t *testing.T) {
	tt := table(time.Minute, plan.Options{Steps: allSteps(), NoRollOver: true})
	low := tt.Window(0, after(0))
	require.Equal(t, []time.Duration{second, 21 * second, 23 * second, 24 * second}, windowTimes(low))
	require.Equal(t, int64(20), low.Seconds(pod(99), after(0)), "time that NotReady has not used is not added")
	require.Equal(t, []time.Duration{31 * second, 37 * second, 39 * second, 40 * second}, windowTimes(tt.Window(1, after(31*second))), "NotReady takes none of the pods' time")
	require.Equal(t, []time.Duration{5 * second, 25 * second, 27 * second, 28 * second}, windowTimes(tt.Window(0, after(4*second))), "a late bucket has all its time")
}

// Without other steps the second bucket is planned for 20 s, when the first one is over. If it starts later, its pods lose the
// difference; but a delay of up to 100 ms costs no second, because a timer may fire that late.
func TestALateBucketLosesTime(t *testing.T) {
	tt := table(time.Minute, plan.Options{})
	seconds := func(start time.Duration) int64 {
		w := tt.Window(1, after(start))
		return w.Seconds(pod(99), w.Ready)
	}
	require.Equal(t, int64(10), seconds(20*second+100*ms))
	require.Equal(t, int64(9), seconds(20*second+101*ms))
	require.Equal(t, int64(6), seconds(24*second))
	require.Zero(t, seconds(time.Hour))
	require.Equal(t, []time.Duration{0, 20 * second, 20 * second, 20 * second}, windowTimes(tt.Window(0, after(-time.Hour))), "a time before the event counts as the event")
}

// The host grants 30 s, the sum of the schedule. Each bucket gets its 20 s and 10 s, as from a kubelet, even if a timer
// is 90 ms late. The drain stops waiting 100 ms before the host's end, to release the lock. The other steps have no time,
// so that in a window the time for NotReady is over at its start, and the kills, the volumes and the statuses at its end.
func TestWindowEndsWithTheHost(t *testing.T) {
	for _, opts := range []plan.Options{{}, {Steps: allSteps()}, {Steps: allSteps(), NoRollOver: true}} {
		tt := table(30*second, opts)
		low, high := tt.Window(0, after(0)), tt.Window(1, after(20*second))
		require.Equal(t, []time.Duration{0, 20 * second, 20 * second, 20 * second}, windowTimes(low))
		require.Equal(t, []time.Duration{20 * second, 29900 * ms, 29900 * ms, 29900 * ms}, windowTimes(high))
		require.Equal(t, int64(20), low.Seconds(pod(99), after(90*ms)))
		require.Equal(t, int64(10), high.Seconds(pod(99), after(20*second+90*ms)))
	}
}

// A bucket of 0 s gives its pods 0 s, whatever earlier buckets left unused. All four deadlines of its window (NotReady,
// kills, volumes, statuses) are its start.
func TestABucketOf0sGets0s(t *testing.T) {
	r := request(noLimit, plan.Options{Steps: allSteps()})
	r.Schedule = buckets(9, 0)
	tt := timetable.New(r)
	w := tt.Window(1, after(second))
	require.Zero(t, w.Seconds(pod(99), after(second)))
	require.Zero(t, w.Seconds(pod(), after(second)))
	require.Equal(t, []time.Duration{second, second, second, second}, windowTimes(w))
}
