package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const (
	ms     = time.Millisecond
	second = time.Second
)

// podTimes returns the pods' time of each bucket.
func podTimes(b plan.Budget) (all []time.Duration) {
	for _, bucket := range b.Buckets {
		all = append(all, bucket.Pods)
	}
	return all
}

// ends returns the End of each bucket.
func ends(b plan.Budget) (all []time.Duration) {
	for _, bucket := range b.Buckets {
		all = append(all, bucket.End)
	}
	return all
}

// budget returns a budget with all steps but Prepare, and the default timeouts. For twoBuckets it is 52.5 s: hold 10 s,
// publishing 2 s, pods 20 s and 10 s, 4 s for the other steps of each bucket, 2 s for containers that have used up their
// grace period (floor), and the margin of 0.5 s.
func budget(s plan.Schedule) plan.Budget {
	steps := allButPrepareAndHold()
	steps.Hold = true
	return plan.NewBudget(s, plan.Options{Steps: steps})
}

// fit fits a budget into limit when it is not known which buckets have pods.
func fit(b plan.Budget, limit time.Duration) plan.Budget {
	var occupied []bool // nil: unknown
	return b.Fit(limit, occupied)
}

// A limit below the schedule shortens all buckets in proportion, with and without other steps of the drain. A longer limit,
// such as the total of 52.5 s, leaves the pods their time.
func TestFitShortensBucketsInProportion(t *testing.T) {
	for name, c := range map[string]struct {
		schedule plan.Schedule
		limit    time.Duration
		want     []time.Duration
	}{
		"0 s":                 {schedule: twoBuckets(), limit: 0, want: []time.Duration{0, 0}},
		"a negative limit":    {schedule: twoBuckets(), limit: math.MinInt64, want: []time.Duration{0, 0}},
		"5 s for 20 and 10":   {schedule: twoBuckets(), limit: 5 * second, want: []time.Duration{3333333333, 1666666667}}, // in ns: two thirds, one third
		"15 s for 40 and 20":  {schedule: plan.Schedule{{0, 40}, {1, 20}}, limit: 15 * second, want: []time.Duration{10 * second, 5 * second}},
		"3 ns less than 30 s": {schedule: twoBuckets(), limit: 30*second - 3, want: []time.Duration{20*second - 2, 10*second - 1}},
		"30 s for 20 and 10":  {schedule: twoBuckets(), limit: 30 * second, want: []time.Duration{20 * second, 10 * second}},
		"the total":           {schedule: twoBuckets(), limit: 52500 * ms, want: []time.Duration{20 * second, 10 * second}},
		"buckets of 0 s":      {schedule: plan.Schedule{{0, 0}, {1, 5}, {2, 0}, {3, 5}}, limit: 8 * second, want: []time.Duration{0, 4 * second, 0, 4 * second}},
		"negative seconds":    {schedule: plan.Schedule{{0, math.MinInt64}, {1, 5}}, limit: time.Minute, want: []time.Duration{0, 5 * second}},
		"MaxInt64 seconds":    {schedule: plan.Schedule{{0, math.MaxInt64}, {1, 7}}, limit: math.MaxInt64, want: []time.Duration{math.MaxInt64, 7 * second}},
		"no schedule":         {schedule: nil, limit: 30 * second, want: nil},
	} {
		before := append(plan.Schedule(nil), c.schedule...)
		for _, wanted := range []plan.Budget{plan.NewBudget(c.schedule, plan.Options{}), budget(c.schedule)} {
			require.Equal(t, c.want, podTimes(fit(wanted, c.limit)), name)
		}
		require.Equal(t, before, c.schedule, name+": the schedule is not changed")
	}
}

// The buckets have 10 s, 20 s and 10 s, the limit is at most their sum, and the bucket of 20 s has no pods. It gets only
// what the others leave. If it is not known which buckets have pods, or all or none have, all are shortened in proportion.
func TestFitShortensBucketsWithoutPodsFirst(t *testing.T) {
	three := plan.NewBudget(plan.Schedule{{0, 10}, {1, 20}, {2, 10}}, plan.Options{Steps: allButPrepareAndHold()})
	occupied := []bool{true, false, true} // which buckets have pods
	for limit, want := range map[time.Duration][]time.Duration{
		10 * second: {5 * second, 0, 5 * second},
		20 * second: {10 * second, 0, 10 * second},
		30 * second: {10 * second, 10 * second, 10 * second},
		40 * second: {10 * second, 20 * second, 10 * second},
	} {
		fitted := three.Fit(limit, occupied)
		require.Equal(t, want, podTimes(fitted), limit)
		require.Equal(t, fitted, three.Fit(limit, append(occupied, false)), "further entries have no effect")
	}
	for _, allAlike := range [][]bool{nil, {}, {false, false, false}, {true, true, true}} {
		require.Equal(t, []time.Duration{5 * second, 10 * second, 5 * second}, podTimes(three.Fit(20*second, allAlike)))
	}
}

// The whole budget is 52.5 s: Hold 10 s, Publish 2 s, two buckets with 20 s and 10 s for their pods and 4 s each for their
// other steps, Floor 2 s, and Margin 0.5 s. From row to row the limit gets shorter. First Hold loses its time, then
// Floor, Margin down to 100 ms, Publish and the buckets' other steps in proportion, and last the rest of Margin. The pods
// keep their 30 s.
func TestFitShortensTheOtherPartsInOrder(t *testing.T) {
	for _, c := range []struct {
		limit                        time.Duration
		hold, floor, margin, publish time.Duration
		readiness                    time.Duration // of each bucket, and as long for Statuses, and twice as long for Unmount
	}{
		{limit: math.MaxInt64, hold: 10000 * ms, floor: 2000 * ms, margin: 500 * ms, publish: 2000 * ms, readiness: 1000 * ms},
		{limit: 52500 * ms, hold: 10000 * ms, floor: 2000 * ms, margin: 500 * ms, publish: 2000 * ms, readiness: 1000 * ms},
		{limit: 52400 * ms, hold: 9900 * ms, floor: 2000 * ms, margin: 500 * ms, publish: 2000 * ms, readiness: 1000 * ms},
		{limit: 42500 * ms, floor: 2000 * ms, margin: 500 * ms, publish: 2000 * ms, readiness: 1000 * ms},
		{limit: 41000 * ms, floor: 500 * ms, margin: 500 * ms, publish: 2000 * ms, readiness: 1000 * ms},
		{limit: 40500 * ms, margin: 500 * ms, publish: 2000 * ms, readiness: 1000 * ms},
		{limit: 40200 * ms, margin: 200 * ms, publish: 2000 * ms, readiness: 1000 * ms},
		{limit: 40100 * ms, margin: 100 * ms, publish: 2000 * ms, readiness: 1000 * ms},
		{limit: 35100 * ms, margin: 100 * ms, publish: 1000 * ms, readiness: 500 * ms},
		{limit: 30110 * ms, margin: 100 * ms, publish: 2 * ms, readiness: 1 * ms},
		{limit: 30100 * ms, margin: 100 * ms},
		{limit: 30040 * ms, margin: 40 * ms},
		{limit: 30000 * ms},
	} {
		end := min(c.limit, 52500*ms)
		high := plan.BucketBudget{Readiness: c.readiness, Unmount: 2 * c.readiness, Statuses: c.readiness}
		low := high
		high.Priority, high.Seconds, high.Pods = 2_000_000_000, 10, 10*second
		high.End = end - c.margin - c.floor
		low.Seconds, low.Pods = 20, 20*second
		low.End = high.End - high.Pods - 4*c.readiness // before all parts of the high bucket
		require.Equal(t, plan.Budget{
			Hold: c.hold, Publish: c.publish, Buckets: []plan.BucketBudget{low, high}, Floor: c.floor, Margin: c.margin,
			WaitEnd: end - max(c.margin, 100*ms), End: end, // the last 100 ms are never for waiting
		}, fit(budget(twoBuckets()), c.limit), c.limit)
	}
}

// Prepare gets its time before all other parts, but at most half of the limit. That time is 2 s by default, and a minute in
// the second budget, which is longer than all that follows.
func TestFitGivesPrepareAtMostHalfOfTheLimit(t *testing.T) {
	wanted := plan.NewBudget(twoBuckets(), plan.Options{Steps: plan.Steps{Prepare: true, Publish: true}})
	for limit, want := range map[time.Duration]time.Duration{0: 0, second: 500 * ms, 4 * second: 2 * second, time.Hour: 2 * second} {
		require.Equal(t, want, fit(wanted, limit).Prepare, limit)
	}
	long := plan.NewBudget(twoBuckets(), plan.Options{Steps: plan.Steps{Prepare: true}, PrepareTimeout: time.Minute})
	require.Equal(t, time.Minute, fit(long, 2*time.Minute).Prepare, "longer than all that follows")
}

// The budget of 36.5 s is: Prepare 2 s, Publish 2 s, pods 20 s and 10 s, Floor 2 s and Margin 0.5 s. What a shorter limit
// leaves after Prepare is shared as usual.
func TestFitSharesWhatPrepareLeaves(t *testing.T) {
	wanted := plan.NewBudget(twoBuckets(), plan.Options{Steps: plan.Steps{Prepare: true, Publish: true}})
	require.Equal(t, 36500*ms, wanted.Total())
	require.Equal(t, 900*ms, fit(wanted, 33*second).Publish, "what is left of 33 s after Prepare (2 s), the pods (30 s) and 100 ms of the margin")
	require.Equal(t, []time.Duration{(2 + 20) * second, (2 + 20 + 10) * second}, ends(fit(wanted, 32*second)), "32 s are enough for Prepare and the pods")
	require.Equal(t, []time.Duration{(2 + 10) * second, (2 + 10 + 5) * second}, ends(fit(wanted, 17*second)), "17 s leave half of the pods' 30 s after Prepare")
}

// Each timeout (in ns here, and different from the others) is the time of its step. The bucket of 1 s also has 1 s to mark its pods
// as not ready, for which there is no timeout option. The bucket of 0 s takes no time. Then follow Floor (2 s for containers that have
// used up their grace period) and Margin (500 ms to store the report and release the lock), which are constants.
func TestNewBudgetAppliesTimeouts(t *testing.T) {
	const timeouts = 7 + 1 + 2 + 4 + 5 // Prepare, Hold and Publish before the first bucket; Unmount and Statuses in it
	require.Equal(t, plan.Budget{
		Prepare: 7, Hold: 1, Publish: 2, Floor: 2 * second, Margin: 500 * ms,
		Buckets: []plan.BucketBudget{
			{Priority: 0, Seconds: 1, Readiness: second, Pods: second, Unmount: 4, Statuses: 5, End: 2*second + timeouts},
			{Priority: 1, End: 2*second + timeouts},
		},
		WaitEnd: 4*second + timeouts, // when the drain stops waiting: after Floor
		End:     4500*ms + timeouts,  // after Margin
	}, plan.NewBudget(plan.Schedule{{Priority: 0, Seconds: 1}, {Priority: 1, Seconds: 0}}, plan.Options{
		Steps:          plan.Steps{Prepare: true, Hold: true, Publish: true, Readiness: true, Unmount: true, Statuses: true},
		PrepareTimeout: 7, HoldTimeout: 1, PublishTimeout: 2, UnmountTimeout: 4, StatusesTimeout: 5,
	}))
}

// Neither a step that is not set nor one with a negative timeout gets time: only the 1 s for the pods is left, then Floor
// and Margin.
func TestNewBudgetWithoutTimeForOtherSteps(t *testing.T) {
	for name, opts := range map[string]plan.Options{
		"no steps": {PrepareTimeout: second, HoldTimeout: second, PublishTimeout: second, UnmountTimeout: second, StatusesTimeout: second},
		"negative timeouts": {
			Steps:          plan.Steps{Prepare: true, Hold: true, Publish: true, Unmount: true, Statuses: true}, // Readiness has no timeout
			PrepareTimeout: -1, HoldTimeout: -1, PublishTimeout: -1, UnmountTimeout: -1, StatusesTimeout: -1,
		},
	} {
		require.Equal(t, plan.Budget{
			Buckets: []plan.BucketBudget{{Seconds: 1, Pods: second, End: second}},
			Floor:   2 * second, Margin: 500 * ms, WaitEnd: (1 + 2) * second, End: 3500 * ms,
		}, plan.NewBudget(plan.Schedule{{0, 1}}, opts), name)
	}
}

// Cap of a minute returns the limit if that is shorter, and otherwise the minute. A limit of 0 means that there is none, and a
// negative one counts as 0.
func TestCapReturnsTheShorterDelay(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: time.Minute, -1: 0, 30 * second: 30 * second, time.Hour: time.Minute} {
		require.Equal(t, want, plan.Options{Limit: limit}.Cap(time.Minute), limit)
	}
}
