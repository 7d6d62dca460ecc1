package timetable_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// windowTimes returns the times of a window, counted from the event.
func windowTimes(w timetable.Window) (all []time.Duration) {
	for _, at := range []time.Time{w.Ready, w.KillsEnd, w.UnmountsEnd, w.End} {
		all = append(all, at.Sub(received()))
	}
	return all
}

// A bucket that begins as late as it may has the time of the schedule, and one that begins earlier has
// what lower ones have left too.
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
	require.Equal(t, int64(29), early.Seconds(pod(99), early.Ready))
	require.Equal(t, int64(30), early.Seconds(pod(99), after(7*second)), "the marks took no time")
	require.Equal(t, int64(10), early.Seconds(pod(), early.Ready), "a pod that asks for nothing has what its bucket has of its own")
	require.Equal(t, int64(3), early.Seconds(pod(3), early.Ready))
	require.Zero(t, early.Seconds(pod(-3), early.Ready))
}

// Without roll-over a bucket has its own time, counted from its start, and ends with the drain at the
// latest.
func TestWindowWithoutRollOver(t *testing.T) {
	tt := table(time.Minute, plan.Options{Steps: allSteps(), NoRollOver: true})
	low := tt.Window(0, after(0))
	require.Equal(t, []time.Duration{second, 21 * second, 23 * second, 24 * second}, windowTimes(low))
	require.Equal(t, int64(20), low.Seconds(pod(99), after(0)), "the pods have no more if the marks took no time")
	require.Equal(t, []time.Duration{31 * second, 37 * second, 39 * second, 40 * second}, windowTimes(tt.Window(1, after(31*second))), "the marks take none of the pods' time")
	require.Equal(t, []time.Duration{5 * second, 25 * second, 27 * second, 28 * second}, windowTimes(tt.Window(0, after(4*second))), "it begins late, and has all of its time")
}

// A bucket that starts after its planned start loses the difference, but not the lag of a
// timer.
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

// A limit that covers the schedule and no more gives each bucket a kubelet's seconds, and the waits end
// 100 ms before the host's end.
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

// The pods of a bucket of 0 s have none, whatever is left.
func TestABucketOf0sGets0s(t *testing.T) {
	r := request(0, plan.Options{Steps: allSteps()})
	r.Schedule = buckets(9, 0)
	tt := timetable.New(r)
	w := tt.Window(1, after(second))
	require.Zero(t, w.Seconds(pod(99), after(second)))
	require.Zero(t, w.Seconds(pod(), after(second)))
	require.Equal(t, []time.Duration{second, second, second, second}, windowTimes(w))
}
