package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const second = time.Second

// announced is when the shutdowns of these tests are announced.
func announced() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

// after is the time that long after the announcement.
func after(d time.Duration) time.Time { return announced().Add(d) }

// table is the timetable of two buckets of 20 s and 10 s for a host that waits for limit;
// 0: no host waits.
func table(limit time.Duration, opts plan.Options) plan.Timetable {
	a := plan.Announcement{Received: announced()}
	if limit != 0 {
		a.HostEnd = after(limit)
	}
	return plan.NewTimetable(twoBuckets(), opts, a)
}

// afterMarks is the grace period of a pod that is killed when the readiness marks of its
// bucket have taken all of their time.
func afterMarks(w plan.Window, pod *v1.Pod) int64 { return w.Seconds(pod, w.Ready) }

// A drain ends before the host's end, by the margin, or earlier if it needs no more time.
func TestRelease(t *testing.T) {
	hooks := plan.Options{Hooks: allHooks()}
	limited := plan.Options{Hooks: allHooks(), Limit: 20 * second}
	for name, c := range map[string]struct {
		limit time.Duration
		opts  plan.Options
		want  time.Duration
	}{
		"no host waits":                   {0, hooks, 42500 * time.Millisecond},
		"half an hour":                    {30 * time.Minute, hooks, 42500 * time.Millisecond},
		"what was asked for":              {42500 * time.Millisecond, hooks, 42 * second},
		"less":                            {30 * second, hooks, 29500 * time.Millisecond},
		"less than ten margins":           {2 * second, hooks, 1800 * time.Millisecond},
		"the end has passed":              {-second, hooks, 0},
		"an operator's limit":             {0, limited, 19500 * time.Millisecond},
		"an operator's limit is nearer":   {30 * second, limited, 19500 * time.Millisecond},
		"an operator's limit is farther":  {10 * second, limited, 9500 * time.Millisecond},
		"an operator leaves nothing":      {30 * second, plan.Options{Limit: -1}, 0},
		"no margin":                       {30 * second, plan.Options{ReleaseMargin: -1}, 30 * second},
		"without hooks, for half an hour": {30 * time.Minute, plan.Options{}, 32500 * time.Millisecond},
	} {
		got := table(c.limit, c.opts)
		require.Equal(t, after(c.want), got.Release(), name)
	}
}

func TestHostEnd(t *testing.T) {
	a := plan.Announcement{Received: announced()}
	_, known := plan.Options{}.HostEnd(a)
	require.False(t, known)
	end, known := plan.Options{Limit: 5 * second}.HostEnd(a)
	require.True(t, known)
	require.Equal(t, after(5*second), end)
	a.HostEnd = after(4 * second)
	end, _ = plan.Options{Limit: 5 * second}.HostEnd(a)
	require.Equal(t, after(4*second), end)
	end, _ = plan.Options{}.HostEnd(a)
	require.Equal(t, after(4*second), end)
	end, known = plan.Options{Limit: -time.Hour}.HostEnd(plan.Announcement{Received: announced()})
	require.True(t, known)
	require.Equal(t, announced(), end, "a host that does not wait goes on at once, not before")
}

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
	require.Equal(t, int64(25), afterMarks(high, pod("long", withGrace(99))))
	require.Equal(t, int64(10), afterMarks(high, pod("nil")), "a pod that asks for nothing has what its bucket has of its own")
	require.Equal(t, int64(3), afterMarks(high, pod("short", withGrace(3))))

	skipped := tt.Skip(0, 0)
	require.Equal(t, 20*second, skipped)
	require.Equal(t, 30*second, tt.Window(1, after(2*second), skipped).Grace(after(2*second)))

	off := table(time.Minute, plan.Options{Hooks: allHooks(), NoRollOver: true})
	require.Zero(t, off.Skip(0, 0))
	low = off.Window(0, after(0), 0)
	require.Zero(t, low.Left(low.Ready, 5*second))
	require.Equal(t, after(24*second), low.End, "it counts from the start of the bucket")
	require.Equal(t, 10*second, off.Window(1, after(6*second), time.Hour).Grace(after(6*second)))
	require.Equal(t, after(20*second), off.Window(1, after(6*second), 0).End)
}

// A bucket that starts after its planned start loses the difference, but not the lag of a
// timer.
func TestWindowOfABucketThatStartsTooLate(t *testing.T) {
	tt := table(time.Minute, plan.Options{})
	long := pod("long", withGrace(99))
	require.Equal(t, int64(10), afterMarks(tt.Window(1, after(20*second+100*time.Millisecond), 0), long))
	require.Equal(t, int64(9), afterMarks(tt.Window(1, after(20*second+101*time.Millisecond), 0), long))
	require.Equal(t, int64(6), afterMarks(tt.Window(1, after(24*second), 4*second), long), "what was left is gone too")
	require.Equal(t, int64(6), afterMarks(tt.Window(1, after(24*second), 0), pod("nil")), "all of the bucket that is left")
	require.Zero(t, afterMarks(tt.Window(1, after(time.Hour), time.Hour), long))
	require.Zero(t, tt.Window(1, after(time.Hour), time.Hour).Grace(after(time.Hour)))
}

// A limit that has room for everything but the margin shortens no grace period, only the
// last wait.
func TestWindowEndsWithTheHost(t *testing.T) {
	tt := table(30*second, plan.Options{})
	high := tt.Window(1, after(20*second), 0)
	require.Equal(t, int64(10), afterMarks(high, pod("long", withGrace(99))))
	require.Equal(t, after(29500*time.Millisecond), high.End)
	require.Equal(t, after(29500*time.Millisecond), high.KillsEnd(after(20*second)))

	hooks := table(34*second, plan.Options{Hooks: allHooks()})
	high = hooks.Window(1, after(23*second), 0)
	require.Equal(t, after(33500*time.Millisecond), high.End)
	require.Equal(t, after(33250*time.Millisecond), high.KillsEnd(high.Ready))
	require.Equal(t, after(33250*time.Millisecond), high.UnmountsEnd(high.Ready), "the unmount leaves the final statuses their 250 ms")
	high = hooks.Window(1, after(33400*time.Millisecond), 0)
	require.Equal(t, after(33400*time.Millisecond), high.Ready, "nor do readiness marks take any of the pods' time")
}

func TestWindowWithoutTime(t *testing.T) {
	tt := plan.NewTimetable(plan.Schedule{{0, 0}}, plan.Options{Hooks: allHooks()}, plan.Announcement{Received: announced()})
	w := tt.Window(0, after(second), 5*second)
	require.Zero(t, afterMarks(w, pod("long", withGrace(99))))
	require.Zero(t, afterMarks(w, pod("nil")))
	require.Zero(t, w.Grace(w.Ready))
	require.Equal(t, after(second), w.End)
}

// A drain that starts late ends when the host stops waiting. The 2 s of the containers'
// stops come before that.
func TestLateStart(t *testing.T) {
	late := func(limit time.Duration, opts plan.Options) plan.Timetable {
		a := plan.Announcement{Received: announced(), Late: true}
		if limit != 0 {
			a.HostEnd = after(limit)
		}
		return plan.NewTimetable(twoBuckets(), opts, a)
	}
	tt := late(2*time.Minute, plan.Options{Hooks: allHooks()})
	require.Equal(t, after(119500*time.Millisecond), tt.Release())
	require.Equal(t, after(79500*time.Millisecond), tt.NotBefore(), "119.5 s less 2 s and twice 4 s beside 30 s")
	require.Equal(t, tt.NotBefore(), tt.First())
	require.Equal(t, after(117500*time.Millisecond), tt.Window(1, after(100*second), 0).End)

	tt = late(20*second, plan.Options{Hooks: allHooks()})
	require.True(t, tt.NotBefore().Before(tt.First()), "there is no time to wait for")
	require.Equal(t, announced().Add(tt.Budget().Publish), tt.First())

	tt = late(0, plan.Options{})
	require.Zero(t, tt.NotBefore(), "no host waits")
	require.Equal(t, announced(), tt.First())
	early := table(2*time.Minute, plan.Options{})
	require.Zero(t, early.NotBefore())
}

// The buckets of a resumed drain end when those of the other process would have.
func TestResumeTimetable(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Hour, 42500 * time.Millisecond, 36 * second, 34 * second, 30 * second, 10 * second, second} {
		opts := plan.Options{Hooks: allHooks()}
		before := table(limit, opts)
		resumed := plan.ResumeTimetable(plan.Resumed{Schedule: before.Schedule(), First: before.First(), Release: before.Release()}, opts)
		require.Equal(t, before.First(), resumed.First())
		require.Equal(t, before.Release(), resumed.Release())
		for i := range before.Schedule() {
			want, got := before.Window(i, after(4*second), second), resumed.Window(i, after(4*second), second)
			require.WithinDuration(t, want.End, got.End, 10*time.Nanosecond, "%v, bucket %d", limit, i)
			require.InDelta(t, want.Grace(after(4*second)), got.Grace(after(4*second)), 10, "%v, bucket %d", limit, i)
		}
	}
}

// The times in a state file may be in any order.
func TestResumeTimetableAfterItsEnd(t *testing.T) {
	const century = 36_500 * 24 * time.Hour
	opts := plan.Options{Hooks: allHooks()}
	for _, before := range []time.Duration{second, century, 2 * century} {
		tt := plan.ResumeTimetable(plan.Resumed{Schedule: twoBuckets(), First: after(before), Release: after(-before)}, opts)
		require.Zero(t, tt.Budget().Floor, before)
		require.Equal(t, second, tt.Budget().Reserves[1].Readiness+tt.Budget().Reserves[1].Unmount+tt.Budget().Reserves[1].Statuses, before)
		require.False(t, tt.Window(1, announced(), 0).End.After(tt.Release()), before)
	}
}

// The seconds of a bucket may be more than a duration can hold.
func TestWindowOfHugeBuckets(t *testing.T) {
	huge := plan.Schedule{{0, 9223372037}, {1, math.MaxInt64}}
	tt := plan.NewTimetable(huge, plan.Options{}, plan.Announcement{Received: announced()})
	w := tt.Window(0, announced(), 0)
	require.Equal(t, int64(3600), afterMarks(w, pod("p", withGrace(3600))))
	require.Equal(t, math.MaxInt64/int64(time.Second), afterMarks(w, pod("nil")))
	require.Equal(t, int64(3600), afterMarks(tt.Window(1, after(time.Minute), w.Left(announced(), time.Minute)), pod("p", withGrace(3600))))
}
