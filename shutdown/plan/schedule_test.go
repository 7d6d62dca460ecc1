package plan_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// The entries of the list are in no order, and two have the priority 0. The schedule ascends by priority, and these two keep
// their order. The caller's list is not changed.
func TestScheduleSortsACopy(t *testing.T) {
	cfg := configWithList(entry(10, 1), entry(-5, 2), entry(0, 3), entry(0, 4))
	before := slices.Clone(cfg.ShutdownGracePeriodByPodPriority)
	require.Equal(t, plan.Schedule{{-5, 2}, {0, 3}, {0, 4}, {10, 1}}, cfg.Schedule(gateOn))
	require.Equal(t, before, cfg.ShutdownGracePeriodByPodPriority)
}

// The configuration has two fields, a total of 30 s and 10 s of it for critical pods, and a list with 99 s. The list is used if its
// gate is on. Otherwise the two fields become two buckets: 30 s - 10 s = 20 s, and 10 s for critical pods.
func TestSchedulePrefersTheListIfItsGateIsOn(t *testing.T) {
	both := config(30*time.Second, 10*time.Second, entry(0, 99))
	require.Equal(t, plan.Schedule{{0, 99}}, both.Schedule(gateOn))
	require.Equal(t, plan.Schedule{{0, 20}, {2_000_000_000, 10}}, both.Schedule(gateOff))
	require.Nil(t, configWithList(entry(0, 99)).Schedule(gateOff), "there is only a list, and its gate is off")
	require.Nil(t, plan.Config{}.Schedule(gateOn), "nothing is configured")
}

// Without a list, the schedule has two buckets: ShutdownGracePeriod (total) less ShutdownGracePeriodCriticalPods (critical), and
// critical. Each is rounded down to whole seconds.
func TestScheduleOfTheTwoFields(t *testing.T) {
	for _, c := range []struct {
		total, critical         time.Duration
		wantLower, wantCritical int64
	}{
		{total: 30 * time.Second, critical: 10 * time.Second, wantLower: 20, wantCritical: 10},
		{total: 20 * time.Second, critical: 20 * time.Second, wantLower: 0, wantCritical: 20},
		{total: 2999 * time.Millisecond, critical: 1500 * time.Millisecond, wantLower: 1, wantCritical: 1}, // 1.499 s and 1.5 s
		{total: time.Nanosecond, critical: 0, wantLower: 0, wantCritical: 0},
	} {
		require.Equal(t, plan.Schedule{{0, c.wantLower}, {2_000_000_000, c.wantCritical}}, config(c.total, c.critical).Schedule(gateOn))
	}
}

// A configuration that Config.Validate rejects must not lead to a negative time. Negative seconds in the list count as 0. If
// the total or the critical part is negative, there is no graceful shutdown, which is a nil schedule.
func TestAScheduleOfInvalidDurationsIsNotNegative(t *testing.T) {
	require.Equal(t, plan.Schedule{{0, 0}}, configWithList(entry(0, -7)).Schedule(gateOn))
	for _, odd := range []plan.Config{
		config(-time.Second, 0),
		config(-time.Second, -2*time.Second),
		config(time.Second, -time.Second),
		config(math.MaxInt64, math.MinInt64),
		config(math.MinInt64, math.MinInt64),
	} {
		require.Nil(t, odd.Schedule(gateOn), odd)
	}
}

// A pod belongs to the last bucket whose priority is not higher than its own. Pods below all buckets
// belong to the first one. The keys are priorities of pods, the values are indexes of buckets.
func TestIndexReturnsTheNearestLowerBucket(t *testing.T) {
	s := plan.Schedule{{-10, 1}, {0, 1}, {0, 1}, {2_000_000_000, 1}}
	for priority, want := range map[int32]int{
		math.MinInt32: 0, -11: 0, -10: 0, -1: 0,
		0: 1, // of two equal buckets the kubelet uses the first
		1: 2, 1_999_999_999: 2, 2_000_000_000: 3, 2_000_001_000: 3, math.MaxInt32: 3,
	} {
		require.Equal(t, want, s.Index(priority), priority)
	}
	require.Equal(t, -1, plan.Schedule{}.Index(0))
}

// requireIndexFinds requires that Index returns a bucket whose priority is not higher, unless it is the first one,
// and that no later bucket fits better.
func requireIndexFinds(t *testing.T, s plan.Schedule, priority int32) {
	t.Helper()
	i := s.Index(priority)
	if len(s) == 0 {
		require.Equal(t, -1, i)
		return
	}
	require.GreaterOrEqual(t, i, 0)
	require.Less(t, i, len(s))
	if s[i].Priority > priority {
		require.Zero(t, i, "only the first bucket takes pods below it")
	}
	for _, later := range s[i+1:] {
		require.True(t, later.Priority > priority || later.Priority == s[i].Priority, "%v of %v is nearer than %d", later, s, i)
	}
}

// extremes returns values that overflow, and a few small ones.
func extremes() []int64 {
	return []int64{
		0, 1, 2, 29, 30, 60, 3600, -1, -30, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64,
		math.MaxInt64 / int64(time.Second), math.MaxInt64/int64(time.Second) + 1, math.MaxInt32, math.MinInt32,
	}
}

// randomValue returns one of the extremes, or a small number.
func randomValue(r *rand.Rand) int64 {
	if all := extremes(); r.IntN(2) == 0 {
		return all[r.IntN(len(all))]
	}
	return r.Int64N(100)
}

// randomSchedule returns a schedule of up to 6 buckets.
func randomSchedule(r *rand.Rand) plan.Schedule {
	var list []plan.PodPriorityGracePeriod
	for range r.IntN(7) {
		list = append(list, entry(int32(randomValue(r)), randomValue(r)))
	}
	return configWithList(list...).Schedule(gateOn)
}

// For any configuration the schedule ascends by priority, has no negative seconds, and its sum does not overflow. If the gate of the
// list (byPriority) is off, the schedule is made of ShutdownGracePeriod and ShutdownGracePeriodCriticalPods, and takes at most the
// former. Index finds the bucket for the priority of an entry, and for one just below an entry. Validate does not panic, whether the
// gate of the shutdown (graceful) is on or off.
func FuzzSchedule(f *testing.F) {
	f.Add(int64(30*time.Second), int64(10*time.Second), true, int32(0), int64(10), int32(5), int64(20))
	f.Add(int64(math.MaxInt64), int64(math.MinInt64), false, int32(math.MaxInt32), int64(math.MaxInt64), int32(math.MinInt32), int64(math.MinInt64))
	f.Add(int64(math.MinInt64), int64(math.MaxInt64), true, int32(0), int64(math.MaxInt64), int32(0), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, total, critical int64, byPriority bool, priorityA int32, secondsA int64, priorityB int32, secondsB int64) {
		cfg := config(time.Duration(total), time.Duration(critical), entry(priorityA, secondsA), entry(priorityB, secondsB))
		s := cfg.Schedule(byPriority)
		for i, b := range s {
			require.GreaterOrEqual(t, b.Seconds, int64(0))
			require.True(t, i == 0 || s[i-1].Priority <= b.Priority, "ascending")
			require.GreaterOrEqual(t, s[:i+1].Total(), s[:i].Total(), "a sum never overflows")
		}
		if !byPriority {
			require.LessOrEqual(t, s.Total(), max(time.Duration(total), 0), "the two fields take at most their total")
		}
		requireIndexFinds(t, s, priorityA)
		requireIndexFinds(t, s, priorityB-1) // math.MaxInt32 if priorityB is math.MinInt32
		for _, graceful := range []bool{gateOn, gateOff} {
			_ = cfg.Validate(graceful, byPriority) // must not panic
		}
	})
}

// For any schedule and priority, Index returns the nearest lower bucket, or the first one if all are higher.
func FuzzIndex(f *testing.F) {
	f.Add(uint64(1), int32(0))
	f.Add(uint64(2), int32(math.MaxInt32))
	f.Fuzz(func(t *testing.T, seed uint64, priority int32) {
		s := randomSchedule(rand.New(rand.NewPCG(seed, 0)))
		requireIndexFinds(t, s, priority)
		for _, b := range s {
			requireIndexFinds(t, s, b.Priority)
		}
	})
}
