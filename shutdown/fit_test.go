package shutdown_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
)

func TestFit(t *testing.T) {
	s := shutdown.Schedule{{0, 60}, {1000, 30}, {2_000_000_000, 10}}
	for _, c := range []struct {
		limit time.Duration
		want  []int64
	}{
		{math.MaxInt64, []int64{60, 30, 10}},
		{100 * time.Second, []int64{60, 30, 10}},
		{100*time.Second - 1, []int64{59, 30, 10}},
		{45 * time.Second, []int64{5, 30, 10}},
		{40 * time.Second, []int64{0, 30, 10}},
		{29500 * time.Millisecond, []int64{0, 19, 10}},
		{4500 * time.Millisecond, []int64{0, 0, 4}},
		{time.Second - 1, []int64{0, 0, 0}},
		{0, []int64{0, 0, 0}},
		{math.MinInt64, []int64{0, 0, 0}},
	} {
		fitted := s.Fit(c.limit)
		require.Equal(t, c.want, seconds(fitted), c.limit)
		require.Equal(t, []int64{60, 30, 10}, seconds(s), "the schedule itself is not changed")
	}
	require.Empty(t, shutdown.Schedule(nil).Fit(time.Minute))
}

// A sum that saturates is covered by the longest limit, and by no other.
func TestFitOfHugeSchedules(t *testing.T) {
	huge := shutdown.Schedule{{0, math.MaxInt64}, {1, math.MaxInt64}}
	require.Equal(t, huge, huge.Fit(math.MaxInt64))
	require.Equal(t, []int64{0, 60}, seconds(huge.Fit(time.Minute)))
	require.Equal(t, []int64{0, 5}, seconds(shutdown.Schedule{{0, math.MinInt64}, {1, 5}}.Fit(time.Minute)))
}

func seconds(s shutdown.Schedule) (all []int64) {
	for _, b := range s {
		all = append(all, b.Seconds)
	}
	return all
}

func FuzzFit(f *testing.F) {
	f.Add(uint64(1), int64(time.Minute))
	f.Add(uint64(2), int64(math.MinInt64))
	f.Add(uint64(3), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, seed uint64, limit int64) {
		s := pickSchedule(rand.New(rand.NewPCG(seed, 0)))
		if len(s) > 0 && seed%2 == 0 {
			s[0].Seconds = math.MinInt64 // Schedule itself gives no negative ones
		}
		before := slices.Clone(s)
		fitted := s.Fit(time.Duration(limit))
		require.Equal(t, before, s)
		require.Len(t, fitted, len(s))
		require.LessOrEqual(t, fitted.Total(), max(time.Duration(limit), 0))
		require.Equal(t, fitted, fitted.Fit(time.Duration(limit)), "what fits stays")
		checkFittedFromTheTop(t, s, fitted, time.Duration(limit))
	})
}

// checkFittedFromTheTop: no bucket has more than its own, and one has less only
// when those above it are whole, those below it have nothing and no whole second
// is left over.
func checkFittedFromTheTop(t *testing.T, s, fitted shutdown.Schedule, limit time.Duration) {
	t.Helper()
	for i, b := range fitted {
		own := max(s[i].Seconds, 0)
		require.Equal(t, s[i].Priority, b.Priority)
		require.GreaterOrEqual(t, b.Seconds, int64(0))
		require.LessOrEqual(t, b.Seconds, own)
		if b.Seconds == own {
			continue
		}
		require.Zero(t, fitted.End(i-1), "%v into %v gives %v", s, limit, fitted)
		for j := i + 1; j < len(s); j++ {
			if b.Seconds > 0 {
				require.Equal(t, max(s[j].Seconds, 0), fitted[j].Seconds, "a higher bucket lost time first")
			}
		}
		require.Less(t, max(limit, 0)-fitted.Total(), time.Second, "time was thrown away")
	}
}
