package timetable_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// afterMarks is the grace period of a pod that is killed when the readiness marks of its
// bucket have taken all of their time.
func afterMarks(w timetable.Window, pod *v1.Pod) int64 { return w.Seconds(pod, w.Ready) }

// The windows of buckets that start as late as the timetable allows.
func TestWindowOfABucketThatStartsAtTheLatest(t *testing.T) {
	for _, opts := range []plan.Options{{Hooks: allHooks()}, {Hooks: allHooks(), NoRollOver: true}} {
		tt := table(time.Minute, opts)
		require.Equal(t, after(2*second), tt.First())
		low := tt.Window(0, tt.First(), 0)
		require.Equal(t, 20*second, low.Grace(low.Ready))
		require.Equal(t, []time.Time{after(3 * second), after(25 * second), after(26 * second)}, []time.Time{low.Ready, low.UnmountsEnd(low.Ready), low.End})
		require.Equal(t, after(23*second), low.KillsEnd(low.Ready))
		require.Zero(t, low.Left(low.Ready, 20*second))
		require.Zero(t, low.Left(low.Ready, 21*second), "pods that take longer leave no debt")

		high := tt.Window(1, low.End, low.Left(low.Ready, 20*second))
		require.Equal(t, 10*second, high.Grace(high.Ready))
		require.Equal(t, []time.Time{after(27 * second), after(39 * second), after(40 * second)}, []time.Time{high.Ready, high.UnmountsEnd(high.Ready), high.End})
	}
}

// Only the pods' time rolls over, not the time of the other steps.
func TestWindowRollsOver(t *testing.T) {
	tt := table(time.Minute, plan.Options{Hooks: allHooks()})
	low := tt.Window(0, after(0), 0)
	require.Equal(t, 20*second, low.Grace(low.Ready), "publishing took nothing, and leaves nothing")
	require.Equal(t, after(22*second), low.UnmountsEnd(after(0)), "the whole of the pods' time, and 2 s")
	high := tt.Window(1, after(5*second), low.Left(low.Ready, 5*second))
	require.Equal(t, 25*second, high.Grace(high.Ready))
	require.Equal(t, after(40*second), high.End, "the end is the planned one")
	require.Equal(t, int64(25), afterMarks(high, pod(99)))
	require.Equal(t, int64(10), afterMarks(high, pod()), "a pod that asks for nothing has what its bucket has of its own")
	require.Equal(t, int64(3), afterMarks(high, pod(3)))
	require.Zero(t, afterMarks(high, pod(-3)))

	skipped := tt.Skip(0, 0)
	require.Equal(t, 20*second, skipped)
	require.Equal(t, 30*second, tt.Window(1, after(2*second), skipped).Grace(after(2*second)))
}

// Without roll-over a bucket that starts early ends early, and its pods with it.
func TestWindowWithoutRollOver(t *testing.T) {
	tt := table(time.Minute, plan.Options{Hooks: allHooks(), NoRollOver: true})
	require.Zero(t, tt.Skip(0, 0))
	low := tt.Window(0, after(0), 0)
	require.Zero(t, low.Left(low.Ready, 5*second))
	require.Equal(t, after(24*second), low.End, "it counts from the start of the bucket")
	high := tt.Window(1, after(6*second), time.Hour)
	require.Equal(t, 10*second, high.Grace(after(6*second)))
	require.Equal(t, after(20*second), high.End)
	require.Equal(t, 7*second, high.Grace(after(10*second)), "until 17 s, to whoever is killed late")
	require.Equal(t, low.End, tt.Window(0, after(-time.Hour), 0).End, "a time before the event counts as the event")
}

// A bucket that starts after its planned start loses the difference, but not the lag of a
// timer.
func TestWindowOfABucketThatStartsTooLate(t *testing.T) {
	tt := table(time.Minute, plan.Options{})
	long := pod(99)
	require.Equal(t, int64(10), afterMarks(tt.Window(1, after(20*second+100*ms), 0), long))
	require.Equal(t, int64(9), afterMarks(tt.Window(1, after(20*second+101*ms), 0), long))
	require.Equal(t, int64(6), afterMarks(tt.Window(1, after(24*second), 4*second), long), "what was left is gone too")
	require.Equal(t, int64(6), afterMarks(tt.Window(1, after(24*second), 0), pod()), "all of the bucket that is left")
	require.Zero(t, afterMarks(tt.Window(1, after(time.Hour), time.Hour), long))
	require.Zero(t, tt.Window(1, after(time.Hour), time.Hour).Grace(after(time.Hour)))
	before := tt.Window(0, after(-time.Hour), 0)
	require.Equal(t, 20*second, before.Grace(after(-time.Hour)), "a time before the event counts as the event")
	require.Equal(t, after(20*second), before.KillsEnd(after(-time.Hour)))
}

// A limit that has room for the pods only shortens no grace period: graces end with the
// host, and the drain stops waiting before that, by the margin.
func TestWindowEndsWithTheHost(t *testing.T) {
	for _, hooks := range []plan.Hooks{{}, allHooks()} {
		tt := table(30*second, plan.Options{Hooks: hooks})
		require.Equal(t, received(), tt.First())
		high := tt.Window(1, after(20*second), 0)
		require.Equal(t, int64(10), afterMarks(high, pod(99)))
		require.Equal(t, 10*second, high.Grace(high.Ready))
		require.Equal(t, after(29500*ms), high.End)
		require.Equal(t, after(29500*ms), high.KillsEnd(after(20*second)))
		require.Equal(t, after(29500*ms), high.UnmountsEnd(after(20*second)))
	}
	tt := table(32*second, plan.Options{Hooks: allHooks()}) // a fifth of each other step
	high := tt.Window(1, after(21200*ms), 0)
	require.Equal(t, after(21400*ms), high.Ready)
	require.Equal(t, after(31400*ms), high.KillsEnd(high.Ready))
	require.Equal(t, after(31300*ms), high.UnmountsEnd(high.Ready), "the final statuses have 200 ms before the end of the drain")
	high = tt.Window(1, after(31400*ms), 0)
	require.Equal(t, after(31400*ms), high.Ready, "nor do readiness marks take any of the pods' time")
}

func TestWindowWithoutTime(t *testing.T) {
	r := request(0, plan.Options{Hooks: allHooks()})
	r.Schedule = buckets(0)
	tt := timetable.New(r)
	w := tt.Window(0, after(second), 5*second)
	require.Zero(t, afterMarks(w, pod(99)))
	require.Zero(t, afterMarks(w, pod()))
	require.Zero(t, w.Grace(w.Ready))
	require.Equal(t, after(second), w.End)
}

// The seconds of a bucket may be more than a duration can hold.
func TestWindowOfHugeBuckets(t *testing.T) {
	r := request(0, plan.Options{})
	r.Schedule = buckets(9223372037, math.MaxInt64)
	tt := timetable.New(r)
	w := tt.Window(0, received(), 0)
	require.Equal(t, int64(3600), afterMarks(w, pod(3600)))
	require.Equal(t, math.MaxInt64/int64(time.Second), afterMarks(w, pod()))
	require.Equal(t, int64(3600), afterMarks(tt.Window(1, after(time.Minute), w.Left(received(), time.Minute)), pod(3600)))
}
