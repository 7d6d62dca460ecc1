package timetable_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// window has the times of a timetable.Window, after the event of the drain.
type window struct{ ready, killsEnd, unmountsEnd, end time.Duration }

// windowOf returns the times of a window.
func windowOf(w timetable.Window) window {
	return window{ready: w.Ready.Sub(received()), killsEnd: w.KillsEnd.Sub(received()), unmountsEnd: w.UnmountsEnd.Sub(received()), end: w.End.Sub(received())}
}

// A bucket that begins as late as planned gets the time of the schedule: 1 s for NotReady, 20 s or 10 s for the kills, 2 s for volumes,
// 1 s for final statuses. The first bucket is planned for 2 s after the event, when publishing is over, and the second for 26 s.
func TestABucketGetsTheTimeOfTheSchedule(t *testing.T) {
	tt := tableWithin(time.Minute, plan.Options{Steps: allButPrepareAndHold()})
	low := tt.Window(0, after(2*second))
	require.Equal(t, window{ready: 3 * second, killsEnd: 23 * second, unmountsEnd: 25 * second, end: 26 * second}, windowOf(low))
	require.Equal(t, int64(20), low.Seconds(podWithGrace(99), low.Ready))
	high := tt.Window(1, after(26*second))
	require.Equal(t, window{ready: 27 * second, killsEnd: 37 * second, unmountsEnd: 39 * second, end: 40 * second}, windowOf(high))
	require.Equal(t, int64(10), high.Seconds(podWithGrace(99), high.Ready))
}

// The second bucket, of 10 s, is planned for 26 s to 40 s after the event, but begins at 7 s. After 1 s for NotReady, its pods also
// get the 19 s that the first one has left, up to their own grace periods. 2 s for volumes and 1 s for statuses follow, so that the
// bucket ends at 40 s as planned.
func TestAnEarlyBucketGetsUnusedTime(t *testing.T) {
	start := after(7 * second)
	early := tableWithin(time.Minute, plan.Options{Steps: allButPrepareAndHold()}).Window(1, start)
	require.Equal(t, window{ready: 8 * second, killsEnd: 37 * second, unmountsEnd: 39 * second, end: 40 * second}, windowOf(early))
	require.Equal(t, int64(10+19), early.Seconds(podWithGrace(99), early.Ready))
	require.Equal(t, int64(10+19+1), early.Seconds(podWithGrace(99), start), "NotReady took none of its 1 s")
	require.Equal(t, int64(3), early.Seconds(podWithGrace(3), early.Ready))
	require.Equal(t, int64(10), early.Seconds(podWithoutGrace(), early.Ready), "a pod without a grace period gets its bucket's seconds")
	require.Zero(t, early.Seconds(podWithGrace(-3), early.Ready))
}

// With NoRollOver a bucket gets only its own time, counted from its start: 1 s for NotReady, 20 s for the kills, 2 s for volumes, and
// 1 s for final statuses. The first bucket is planned for 2 s after the event; here it begins 2 s earlier, and 2 s later.
func TestWindowWithoutRollOver(t *testing.T) {
	tt := tableWithin(time.Minute, plan.Options{Steps: allButPrepareAndHold(), NoRollOver: true})
	early := tt.Window(0, after(0))
	require.Equal(t, window{ready: second, killsEnd: 21 * second, unmountsEnd: 23 * second, end: 24 * second}, windowOf(early))
	require.Equal(t, int64(20), early.Seconds(podWithGrace(99), after(0)), "time that NotReady has not used is not added")
	late := tt.Window(0, after(4*second))
	require.Equal(t, window{ready: 5 * second, killsEnd: 25 * second, unmountsEnd: 27 * second, end: 28 * second}, windowOf(late))
}

// With NoRollOver a late bucket ends with the drain at the latest. The second bucket is planned for 26 s to 40 s, and begins at 31 s. At
// the end, 2 s for volumes and 1 s for statuses remain, so its kills have 6 s instead of 10 s, and NotReady has none.
func TestALateWindowWithoutRollOverEndsWithTheDrain(t *testing.T) {
	tt := tableWithin(time.Minute, plan.Options{Steps: allButPrepareAndHold(), NoRollOver: true})
	require.Equal(t, window{ready: 31 * second, killsEnd: 37 * second, unmountsEnd: 39 * second, end: 40 * second}, windowOf(tt.Window(1, after(31*second))))
}

// Without other steps the second bucket is planned for 20 s, when the first one is over. If it starts later, its pods lose the
// difference; but a delay of up to 100 ms costs no second, because a timer may fire that late.
func TestALateBucketLosesTime(t *testing.T) {
	tt := tableWithin(time.Minute, plan.Options{})
	seconds := func(start time.Duration) int64 {
		w := tt.Window(1, after(start))
		return w.Seconds(podWithGrace(99), w.Ready)
	}
	require.Equal(t, int64(10), seconds(20*second+100*ms))
	require.Equal(t, int64(9), seconds(20*second+101*ms))
	require.Equal(t, int64(6), seconds(24*second))
	require.Zero(t, seconds(time.Hour))
	require.Equal(t, window{killsEnd: 20 * second, unmountsEnd: 20 * second, end: 20 * second}, windowOf(tt.Window(0, after(-time.Hour))), "a time before the event counts as the event")
}

// The host grants 30 s, exactly the sum of the schedule. Nothing is left for the other steps, so it makes no difference which of
// them there are: the time for NotReady ends when its bucket begins, and the kills, the volumes and the statuses end with the
// bucket. The pods get their 20 s and 10 s, as from a kubelet, even if a timer is 90 ms late. The second bucket ends 100 ms
// before the host, to release the lock.
func TestWindowEndsWithTheHost(t *testing.T) {
	for _, opts := range []plan.Options{{}, {Steps: allButPrepareAndHold()}, {Steps: allButPrepareAndHold(), NoRollOver: true}} {
		tt := tableWithin(30*second, opts)
		low, high := tt.Window(0, after(0)), tt.Window(1, after(20*second))
		require.Equal(t, window{ready: 0, killsEnd: 20 * second, unmountsEnd: 20 * second, end: 20 * second}, windowOf(low))
		require.Equal(t, window{ready: 20 * second, killsEnd: 29900 * ms, unmountsEnd: 29900 * ms, end: 29900 * ms}, windowOf(high))
		require.Equal(t, int64(20), low.Seconds(podWithGrace(99), after(90*ms)))
		require.Equal(t, int64(10), high.Seconds(podWithGrace(99), after(20*second+90*ms)))
	}
}

// A bucket of 0 s gives its pods 0 s, whatever earlier buckets left unused. It starts at 1 s, and everything in it ends then.
func TestABucketOf0sGets0s(t *testing.T) {
	r := requestWithin(noLimit, plan.Options{Steps: allButPrepareAndHold()})
	r.Schedule = buckets(9, 0)
	tt := timetable.New(r)
	w := tt.Window(1, after(second))
	require.Zero(t, w.Seconds(podWithGrace(99), after(second)))
	require.Zero(t, w.Seconds(podWithoutGrace(), after(second)))
	require.Equal(t, window{ready: second, killsEnd: second, unmountsEnd: second, end: second}, windowOf(w))
}
