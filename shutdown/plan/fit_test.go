package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const second = time.Second

func seconds(s plan.Schedule) (all []int64) {
	for _, b := range s {
		all = append(all, b.Seconds)
	}
	return all
}

// budget returns a budget of all steps but Prepare, whose times are the defaults.
func budget(s plan.Schedule) plan.Budget {
	hooks := allHooks()
	hooks.Hold = true
	return plan.NewBudget(s, plan.Options{Hooks: hooks})
}

// The pods' time is shortened last, whatever else a drain does.
func TestFitCutsNeeds(t *testing.T) {
	three := plan.Schedule{{0, 60}, {1000, 30}, {2_000_000_000, 10}}
	ten := make(plan.Schedule, 10)
	for i := range ten {
		ten[i] = plan.Bucket{Priority: int32(i), Seconds: 3}
	}
	for name, c := range map[string]struct {
		schedule plan.Schedule
		limit    time.Duration
		want     []int64
	}{
		"nothing":                        {twoBuckets(), 0, []int64{0, 0}},
		"less than nothing":              {twoBuckets(), math.MinInt64, []int64{0, 0}},
		"less than a second":             {twoBuckets(), second - 1, []int64{0, 0}},
		"one second":                     {twoBuckets(), second, []int64{0, 1}},
		"5 s for 20 and 10":              {twoBuckets(), 5 * second, []int64{0, 5}},
		"5 s for 0 and 5":                {plan.Schedule{{0, 0}, {1, 5}}, 5 * second, []int64{0, 5}},
		"10 s for 20 and 10":             {twoBuckets(), 10 * second, []int64{0, 10}},
		"just short of 30 s":             {twoBuckets(), 30*second - 1, []int64{19, 10}},
		"30 s for 20 and 10":             {twoBuckets(), 30 * second, []int64{20, 10}},
		"the total":                      {twoBuckets(), 52500 * time.Millisecond, []int64{20, 10}},
		"three buckets, the lowest pays": {three, 45 * second, []int64{5, 30, 10}},
		"three buckets, two pay":         {three, 30 * second, []int64{0, 20, 10}},
		"three buckets, 4.5 s":           {three, 4500 * time.Millisecond, []int64{0, 0, 4}},
		"ten buckets":                    {ten, 20 * second, []int64{0, 0, 0, 2, 3, 3, 3, 3, 3, 3}},
		"buckets of 0 s":                 {plan.Schedule{{0, 0}, {1, 5}, {2, 0}, {3, 5}}, 8 * second, []int64{0, 3, 0, 5}},
		"buckets of less":                {plan.Schedule{{0, math.MinInt64}, {1, 5}}, time.Minute, []int64{0, 5}},
		"the extremes, cut":              {plan.Schedule{{0, math.MaxInt64}, {1, math.MaxInt64}}, time.Minute, []int64{0, 60}},
		"the extremes, whole":            {plan.Schedule{{0, math.MaxInt64}, {1, math.MaxInt64}}, math.MaxInt64, []int64{math.MaxInt64, math.MaxInt64}},
		"no schedule":                    {nil, 30 * second, nil},
	} {
		before := append(plan.Schedule(nil), c.schedule...)
		for _, wanted := range []plan.Budget{plan.NewBudget(c.schedule, plan.Options{}), budget(c.schedule)} {
			fitted := wanted.Fit(c.limit, nil)
			require.Equal(t, c.want, seconds(fitted.Schedule), name)
			if fitted.Schedule.Total() < wanted.Schedule.Total() {
				require.Zero(t, fitted.Hold+fitted.Floor+fitted.Overhead(), name)
			}
		}
		require.Equal(t, before, c.schedule, name+": the schedule itself is not changed")
	}
}

// What is beside the pods' time is shortened in order, and only as far as is necessary.
func TestFitShortensTheOtherPartsInOrder(t *testing.T) {
	const ms = time.Millisecond
	whole := plan.Reserve{Readiness: 1000 * ms, Unmount: 2000 * ms, Statuses: 1000 * ms}
	for _, c := range []struct {
		limit                time.Duration
		hold, floor, publish time.Duration
		low, high            plan.Reserve
	}{
		{math.MaxInt64, 10000 * ms, 2000 * ms, 2000 * ms, whole, whole},
		{52500 * ms, 10000 * ms, 2000 * ms, 2000 * ms, whole, whole},
		{52400 * ms, 9900 * ms, 2000 * ms, 2000 * ms, whole, whole},
		{42500 * ms, 0, 2000 * ms, 2000 * ms, whole, whole},
		{41000 * ms, 0, 500 * ms, 2000 * ms, whole, whole},
		{40500 * ms, 0, 0, 2000 * ms, whole, whole},
		{40000 * ms, 0, 0, 2000 * ms, whole, whole}, // the margin has no room, and the drain ends by it
		{36000 * ms, 0, 0, 1200 * ms, plan.Reserve{600 * ms, 1200 * ms, 600 * ms}, plan.Reserve{600 * ms, 1200 * ms, 600 * ms}},
		{30500 * ms, 0, 0, 100 * ms, plan.Reserve{50 * ms, 100 * ms, 50 * ms}, plan.Reserve{50 * ms, 100 * ms, 50 * ms}},
		{30400 * ms, 0, 0, 0, plan.Reserve{40 * ms, 80 * ms, 40 * ms}, plan.Reserve{60 * ms, 120 * ms, 60 * ms}}, // the 80 ms of publishing
		{30200 * ms, 0, 0, 0, plan.Reserve{}, plan.Reserve{50 * ms, 100 * ms, 50 * ms}},
		{30000 * ms, 0, 0, 0, plan.Reserve{}, plan.Reserve{}},
	} {
		require.Equal(t, plan.Budget{
			Hold: c.hold, Publish: c.publish, Schedule: twoBuckets(), Reserves: []plan.Reserve{c.low, c.high}, Floor: c.floor, Margin: 500 * ms,
		}, budget(twoBuckets()).Fit(c.limit, nil), c.limit)
	}
}

// A share below 100 ms goes to the highest bucket, and what that does not use to the next.
func TestFitOfManySmallShares(t *testing.T) {
	many := make(plan.Schedule, 100)
	for i := range many {
		many[i] = plan.Bucket{Priority: int32(i), Seconds: 1}
	}
	b := plan.NewBudget(many, plan.Options{Hooks: plan.Hooks{Unmount: true}}).Fit(106*second, nil)
	for i, r := range b.Reserves {
		require.Equal(t, plan.Reserve{Unmount: map[bool]time.Duration{true: 2 * second}[i >= 97]}, r, i)
	}
}

// Without the margin the shortened parts add up to the limit, or to a few nanoseconds less: each share
// is rounded down.
func TestFitAddsUpToTheLimit(t *testing.T) {
	wanted := budget(twoBuckets())
	for _, missing := range []time.Duration{1, 2, 999, 3333 * time.Millisecond, 9 * second} {
		limit := 40*second - missing
		fitted := wanted.Fit(limit, nil)
		require.InDelta(t, limit, fitted.Total()-fitted.Margin, 5, missing)
		require.LessOrEqual(t, fitted.Total()-fitted.Margin, limit, missing)
	}
}

// The seconds that no pod needs give way first. What the other steps leave of the limit
// goes back to the buckets, from the highest down, first to those with pods.
func TestFitByNeeds(t *testing.T) {
	s := plan.Schedule{{0, 20}, {10, 5}, {20, 0}, {30, 10}}
	for _, c := range []struct {
		limit time.Duration
		needs []int64
		want  []int64
	}{
		{28 * second, []int64{0, 3, 0, 2}, []int64{0, 3, 0, 2}}, // 5 s, and 22.5 s for all the rest
		{29500 * time.Millisecond, []int64{0, 3, 0, 2}, []int64{0, 3, 0, 4}},
		{36499 * time.Millisecond, []int64{0, 3, 0, 2}, []int64{0, 3, 0, 10}},
		{36500 * time.Millisecond, []int64{0, 3, 0, 2}, []int64{0, 4, 0, 10}},
		{38500 * time.Millisecond, []int64{0, 3, 0, 2}, []int64{1, 5, 0, 10}},
		{50 * second, []int64{0, 3, 0, 2}, []int64{12, 5, 0, 10}},
		{5 * second, []int64{0, 3, 0, 2}, []int64{0, 3, 0, 2}},
		{4 * second, []int64{0, 3, 0, 2}, []int64{0, 2, 0, 2}},
		{30 * second, []int64{99, -1, 5, 0}, []int64{20, 0, 0, 0}}, // needs count up to the bucket, from 0
		{26 * second, []int64{0, 0}, []int64{0, 0, 0, 10}},         // a bucket without an entry needs its seconds
	} {
		require.Equal(t, c.want, seconds(budget(s).Fit(c.limit, c.needs).Schedule), "%v for %v", c.limit, c.needs)
	}
	b := budget(s).Fit(50*second, []int64{0, 3, 0, 2})
	require.Zero(t, b.Reserves[0], "nobody is marked, unmounted or flushed in an empty bucket, also if it has time")
	require.NotZero(t, b.Reserves[1])
	whole := budget(s)
	require.Equal(t, whole, whole.Fit(whole.Total(), []int64{0, 3, 0, 2}), "nothing is fitted if the host waits for all of it")
}

// Prepare is taken from the limit first, and never shortened.
func TestFitKeepsPrepare(t *testing.T) {
	wanted := plan.NewBudget(twoBuckets(), plan.Options{Hooks: plan.Hooks{Prepare: true, Publish: true}})
	require.Equal(t, 2*second, wanted.Prepare)
	require.Equal(t, 36500*time.Millisecond, wanted.Total())
	for limit, want := range map[time.Duration][]int64{
		0: {0, 0}, second: {0, 0}, 5 * second: {0, 3}, 31 * second: {19, 10}, 32 * second: {20, 10},
	} {
		fitted := wanted.Fit(limit, nil)
		require.Equal(t, 2*second, fitted.Prepare, limit)
		require.Equal(t, want, seconds(fitted.Schedule), limit)
		require.Zero(t, fitted.Publish, limit)
	}
	require.Equal(t, second, wanted.Fit(33*second, nil).Publish)
}

// For each duration 0 means the default and a negative value none.
func TestNewBudgetOfOptions(t *testing.T) {
	all := plan.Options{
		Hooks:       plan.Hooks{Prepare: true, Hold: true, Publish: true, Readiness: true, Unmount: true, Statuses: true},
		HoldTimeout: 1, PublishTimeout: 2, ReadinessReserve: 3, UnmountReserve: 4, FlushReserve: 5, ReleaseMargin: 6, PrepareTimeout: 7,
	}
	one := plan.Schedule{{0, 1}, {1, 0}}
	require.Equal(t, plan.Budget{
		Prepare: 7, Hold: 1, Publish: 2, Schedule: one, Reserves: []plan.Reserve{{3, 4, 5}, {}}, Floor: 2 * second, Margin: 6,
	}, plan.NewBudget(one, all))

	all.Hooks = plan.Hooks{}
	require.Equal(t, plan.Budget{Schedule: one, Reserves: []plan.Reserve{{}, {}}, Floor: 2 * second, Margin: 6}, plan.NewBudget(one, all))

	none := plan.Options{
		Hooks:          plan.Hooks{Prepare: true, Hold: true, Publish: true, Readiness: true, Unmount: true, Statuses: true},
		PrepareTimeout: -1, HoldTimeout: -1, PublishTimeout: -1, ReadinessReserve: -1, UnmountReserve: -1, FlushReserve: -1, ReleaseMargin: -1,
	}
	require.Equal(t, plan.Budget{Schedule: one, Reserves: []plan.Reserve{{}, {}}, Floor: 2 * second}, plan.NewBudget(one, none))
}

// Of 3,000 buckets whose steps take for ever, each has its part, and all fit into the limit.
func TestFitSaturates(t *testing.T) {
	const most = time.Duration(math.MaxInt64)
	many := make(plan.Schedule, 3000)
	for i := range many {
		many[i] = plan.Bucket{Priority: int32(i), Seconds: math.MaxInt64}
	}
	wanted := plan.NewBudget(many, plan.Options{
		Hooks:       plan.Hooks{Hold: true, Publish: true, Readiness: true, Unmount: true, Statuses: true},
		HoldTimeout: most, PublishTimeout: most, ReadinessReserve: most, UnmountReserve: most, FlushReserve: most, ReleaseMargin: most,
	})
	require.Equal(t, most, wanted.Total())
	require.Equal(t, wanted.Schedule, wanted.Fit(most, nil).Schedule)
	needs := make([]int64, len(many))
	for i := range needs {
		needs[i] = 1
	}
	for limit, want := range map[time.Duration]int64{3000 * second: 1, 2000 * second: 0, time.Hour: 1, most - 1: 1} {
		fitted := wanted.Fit(limit, needs)
		require.Equal(t, want, fitted.Schedule[0].Seconds, limit)
		require.Equal(t, int64(1), fitted.Schedule[2999].Seconds, limit)
		checkWithin(t, fitted, limit)
		require.Equal(t, max(limit-3000*second, 0), fitted.Overhead(), limit)
	}
}

// The margin is a tenth of the limit at most.
func TestFitOfAWideMargin(t *testing.T) {
	wide := plan.NewBudget(twoBuckets(), plan.Options{ReleaseMargin: time.Hour})
	require.Equal(t, 3*second, wide.Fit(30*second, nil).Margin)
	require.Equal(t, []int64{20, 10}, seconds(wide.Fit(30*second, nil).Schedule), "it takes nothing from the pods")
	require.Equal(t, time.Hour, wide.Fit(11*time.Hour, nil).Margin)
}

// A budget that was made by hand may have no reserves at all.
func TestBudgetWithoutReserves(t *testing.T) {
	b := plan.Budget{Schedule: twoBuckets()}
	require.Equal(t, 30*second, b.Total())
	require.Equal(t, []int64{19, 10}, seconds(b.Fit(29*second, nil).Schedule))
}

// An operator's limit caps the delay to request.
func TestCap(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: time.Minute, -1: 0, 30 * second: 30 * second, time.Hour: time.Minute} {
		require.Equal(t, want, plan.Options{Limit: limit}.Cap(time.Minute), limit)
	}
}

// What is left goes first to a bucket whose pods need a second, and then to an empty one above it.
func TestFitGivesPodsWhatIsLeft(t *testing.T) {
	fitted := plan.NewBudget(plan.Schedule{{0, 10}, {1, 10}}, plan.Options{}).Fit(8*second, []int64{1, 0})
	require.Equal(t, []int64{5, 0}, seconds(fitted.Schedule))
}

// A share of less than 100 ms goes to the highest bucket that can use it, and to the next one once
// that has all it asks for.
func TestFitGivesSmallSharesAway(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		wanted, fitted []time.Duration
		limit          time.Duration
	}{
		{[]time.Duration{200 * ms, 200 * ms}, []time.Duration{0, 199 * ms}, 199 * ms},
		{[]time.Duration{200 * ms, 200 * ms}, []time.Duration{100 * ms, 100 * ms}, 200 * ms},
		{[]time.Duration{140 * ms, 140 * ms, 140 * ms, 140 * ms, 560 * ms}, []time.Duration{0, 0, 0, 140 * ms, 560 * ms}, 700 * ms},
	} {
		var b plan.Budget
		for i, wanted := range c.wanted {
			b.Schedule = append(b.Schedule, plan.Bucket{Priority: int32(i), Seconds: 1})
			b.Reserves = append(b.Reserves, plan.Reserve{Statuses: wanted})
		}
		var fitted []time.Duration
		for _, reserve := range b.Fit(b.Schedule.Total()+c.limit, nil).Reserves {
			fitted = append(fitted, reserve.Statuses)
		}
		require.Equal(t, c.fitted, fitted)
	}
}

// Reserves whose sum is more than the longest duration share what there is.
func TestFitOfTheLongestReserves(t *testing.T) {
	longest := plan.Reserve{Readiness: math.MaxInt64, Unmount: math.MaxInt64, Statuses: math.MaxInt64}
	b := plan.Budget{Schedule: plan.Schedule{{0, 1}}, Reserves: []plan.Reserve{longest}}
	require.Equal(t, []plan.Reserve{{Readiness: 3 * second}}, b.Fit(4*second, nil).Reserves)
}
