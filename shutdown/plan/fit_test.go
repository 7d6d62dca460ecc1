package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

func seconds(s plan.Schedule) (all []int64) {
	for _, b := range s {
		all = append(all, b.Seconds)
	}
	return all
}

// The pods' time is shortened if the host waits for less than was requested.
func TestFitSchedule(t *testing.T) {
	const second = time.Second
	none := plan.Hooks{}
	three := plan.Schedule{{0, 60}, {1000, 30}, {2_000_000_000, 10}}
	ten := make(plan.Schedule, 10)
	for i := range ten {
		ten[i] = plan.Bucket{Priority: int32(i), Seconds: 3}
	}
	for name, c := range map[string]struct {
		schedule plan.Schedule
		hooks    plan.Hooks
		limit    time.Duration
		want     []int64
	}{
		"all hooks, 5 s":                 {twoBuckets(), allHooks(), 5 * second, []int64{0, 3}},
		"all hooks, 10 s":                {twoBuckets(), allHooks(), 10 * second, []int64{0, 7}},
		"all hooks, 30 s":                {twoBuckets(), allHooks(), 30 * second, []int64{15, 10}},
		"all hooks, just short":          {twoBuckets(), allHooks(), 34*second - 1, []int64{19, 10}},
		"all hooks, 34 s":                {twoBuckets(), allHooks(), 34 * second, []int64{20, 10}},
		"all hooks, what is asked for":   {twoBuckets(), allHooks(), 42500 * time.Millisecond, []int64{20, 10}},
		"no hook, nothing":               {twoBuckets(), none, 0, []int64{0, 0}},
		"no hook, less than nothing":     {twoBuckets(), none, math.MinInt64, []int64{0, 0}},
		"no hook, 1 s":                   {twoBuckets(), none, second, []int64{0, 0}},
		"no hook, 5 s":                   {twoBuckets(), none, 5 * second, []int64{0, 4}},
		"no hook, 29 s":                  {twoBuckets(), none, 29 * second, []int64{18, 10}},
		"no hook, the total":             {twoBuckets(), none, 30 * second, []int64{20, 10}},
		"no hook, the total and 2 s":     {twoBuckets(), none, 32 * second, []int64{20, 10}},
		"no hook, everything":            {twoBuckets(), none, math.MaxInt64, []int64{20, 10}},
		"three buckets, the lowest pays": {three, none, 45 * second, []int64{4, 30, 10}},
		"three buckets, two pay":         {three, none, 30 * second, []int64{0, 19, 10}},
		"three buckets, 4.5 s":           {three, none, 4500 * time.Millisecond, []int64{0, 0, 4}},
		"one bucket":                     {three[:1], allHooks(), 30 * second, []int64{26}},
		"ten buckets":                    {ten, allHooks(), 20 * second, []int64{0, 0, 0, 0, 0, 3, 3, 3, 3, 3}},
		"buckets of 0 s":                 {plan.Schedule{{0, 0}, {1, 5}, {2, 0}, {3, 5}}, none, 8 * second, []int64{0, 2, 0, 5}},
		"buckets of less":                {plan.Schedule{{0, math.MinInt64}, {1, 5}}, none, time.Minute, []int64{0, 5}},
		"the extremes, cut":              {plan.Schedule{{0, math.MaxInt64}, {1, math.MaxInt64}}, none, time.Minute, []int64{0, 59}},
		"the extremes, whole":            {plan.Schedule{{0, math.MaxInt64}, {1, math.MaxInt64}}, none, math.MaxInt64, []int64{math.MaxInt64, math.MaxInt64}},
		"no schedule":                    {nil, allHooks(), 30 * second, nil},
	} {
		before := append(plan.Schedule(nil), c.schedule...)
		wanted := plan.NewBudget(c.schedule, plan.Options{Hooks: c.hooks})
		require.Equal(t, c.want, seconds(wanted.Fit(c.limit).Schedule), name)
		require.Equal(t, before, c.schedule, name+": the schedule itself is not changed")
		require.Equal(t, wanted, plan.NewBudget(c.schedule, plan.Options{Hooks: c.hooks}), name+": nor is the budget")
	}
}

// The other parts are shortened before the schedule, in order and down to their minimum.
func TestFitShortensTheOtherPartsInOrder(t *testing.T) {
	const ms = time.Millisecond
	hooks := allHooks()
	hooks.Hold = true
	whole := plan.Reserve{Readiness: 1000 * ms, Unmount: 2000 * ms, Statuses: 1000 * ms}
	half := plan.Reserve{Readiness: 500 * ms, Unmount: 1000 * ms, Statuses: 500 * ms}
	quarter := plan.Reserve{Readiness: 250 * ms, Unmount: 500 * ms, Statuses: 250 * ms}
	for _, c := range []struct {
		limit                        time.Duration
		hold, floor, publish, margin time.Duration
		each                         plan.Reserve
	}{
		{math.MaxInt64, 10000 * ms, 2000 * ms, 2000 * ms, 500 * ms, whole},
		{52500 * ms, 10000 * ms, 2000 * ms, 2000 * ms, 500 * ms, whole},
		{52400 * ms, 9900 * ms, 2000 * ms, 2000 * ms, 500 * ms, whole},
		{42500 * ms, 0, 2000 * ms, 2000 * ms, 500 * ms, whole},
		{41000 * ms, 0, 500 * ms, 2000 * ms, 500 * ms, whole},
		{40500 * ms, 0, 0, 2000 * ms, 500 * ms, whole},
		{36500 * ms, 0, 0, 2000 * ms, 500 * ms, half},
		{34500 * ms, 0, 0, 2000 * ms, 500 * ms, quarter},
		{34000 * ms, 0, 0, 2000 * ms, 500 * ms, quarter}, // the margin does not fit, and the drain ends by it
	} {
		b := plan.NewBudget(twoBuckets(), plan.Options{Hooks: hooks}).Fit(c.limit)
		require.Equal(t, plan.Budget{
			Hold: c.hold, Publish: c.publish, Schedule: twoBuckets(), Reserves: []plan.Reserve{c.each, c.each}, Floor: c.floor, Margin: c.margin,
		}, b, c.limit)
	}
}

// The fraction of a second that the whole seconds of the schedule leave goes back to
// publishing and the reserves.
func TestFitLeavesNoTimeUnused(t *testing.T) {
	b := plan.NewBudget(twoBuckets(), plan.Options{Hooks: allHooks()}).Fit(10 * time.Second)
	require.Equal(t, []int64{0, 7}, seconds(b.Schedule))
	require.Equal(t, []plan.Reserve{{}, b.Reserves[1]}, b.Reserves, "a bucket without time has no reserve")
	require.InDelta(t, 10*time.Second, b.Total(), float64(10*time.Nanosecond))
	// Publishing has at least 1 s and the reserve at least 0.7 s. The remaining 0.8 s are
	// apportioned: publishing could use 1 s more, and the reserve 3.3 s.
	require.InDelta(t, time.Second+800*time.Millisecond*10/43, b.Publish, 1)
	require.Equal(t, 500*time.Millisecond, b.Margin)
}

// The shortened parts add up to the limit, to the nanosecond.
func TestFitAddsUpToTheLimit(t *testing.T) {
	wanted := plan.NewBudget(twoBuckets(), plan.Options{Hooks: allHooks()})
	for _, missing := range []time.Duration{1, 2, 999, 3333 * time.Millisecond} {
		limit := wanted.Total() - wanted.Floor - missing
		require.Equal(t, limit, wanted.Fit(limit).Total(), missing)
	}
}

// The margin is a tenth of the limit at most. For other durations 0 means the default and
// a negative value none.
func TestNewBudgetOfOptions(t *testing.T) {
	all := plan.Options{
		Hooks:       plan.Hooks{Hold: true, Publish: true, Readiness: true, Unmount: true, Statuses: true},
		HoldTimeout: 1, PublishTimeout: 2, ReadinessReserve: 3, UnmountReserve: 4, FlushReserve: 5, ReleaseMargin: 6,
	}
	one := plan.Schedule{{0, 1}, {1, 0}}
	require.Equal(t, plan.Budget{
		Hold: 1, Publish: 2, Schedule: one, Reserves: []plan.Reserve{{3, 4, 5}, {}}, Floor: 2 * time.Second, Margin: 6,
	}, plan.NewBudget(one, all))

	all.Hooks = plan.Hooks{}
	require.Equal(t, plan.Budget{Schedule: one, Reserves: []plan.Reserve{{}, {}}, Floor: 2 * time.Second, Margin: 6}, plan.NewBudget(one, all))

	none := plan.Options{
		Hooks:       plan.Hooks{Hold: true, Publish: true, Readiness: true, Unmount: true, Statuses: true},
		HoldTimeout: -1, PublishTimeout: -1, ReadinessReserve: -1, UnmountReserve: -1, FlushReserve: -1, ReleaseMargin: -1,
	}
	require.Equal(t, plan.Budget{Schedule: one, Reserves: []plan.Reserve{{}, {}}, Floor: 2 * time.Second}, plan.NewBudget(one, none))

	wide := plan.NewBudget(one, plan.Options{ReleaseMargin: time.Hour})
	require.Equal(t, 3*time.Second, wide.Fit(30*time.Second).Margin)
}
