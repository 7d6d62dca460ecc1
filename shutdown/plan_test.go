package shutdown_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

// granted gives the seconds of each pod by its name.
func granted(p shutdown.Plan) map[string]int64 {
	all := map[string]int64{}
	for _, b := range p.Buckets {
		for _, pod := range b.Pods {
			all[pod.Pod.Name] = pod.GrantedSeconds
		}
	}
	return all
}

// twoBuckets is 20 s for normal pods and 10 s for critical ones.
func twoBuckets() shutdown.Schedule { return shutdown.Schedule{{0, 20}, {2_000_000_000, 10}} }

func critical() func(*v1.Pod) { return withPriority(2_000_000_000) }

func TestNewPlanWithTheKubeletsPods(t *testing.T) {
	plan := shutdown.NewPlan(twoBuckets(), list(
		pod("normal-nil"), pod("critical-nil", critical()), pod("normal", withGrace(2)),
		pod("critical", critical(), withGrace(2)), pod("normal-long", withGrace(1000)),
	), shutdown.PlanOptions{NoRollOver: true})
	require.Equal(t, map[string]int64{"normal-nil": 20, "critical-nil": 10, "normal": 2, "critical": 2, "normal-long": 20}, granted(plan))
	require.Equal(t, twoBuckets(), plan.Schedule)
	first, second := plan.Buckets[0], plan.Buckets[1]
	require.Equal(t, []time.Duration{0, 20 * time.Second, 20 * time.Second, 30 * time.Second},
		[]time.Duration{first.Start, first.End, second.Start, second.End})
	require.Equal(t, []bool{false, false, true}, []bool{first.Pods[0].Truncated(), first.Pods[1].Truncated(), first.Pods[2].Truncated()})
	require.Equal(t, []int64{20, 2, 1000}, []int64{first.Pods[0].WantedSeconds, first.Pods[1].WantedSeconds, first.Pods[2].WantedSeconds})
}

// What a bucket without pods leaves is known beforehand. A pod that asks for
// more than its bucket gets it; one that asks for nothing does not.
func TestNewPlanRollsOverSkippedBuckets(t *testing.T) {
	s := shutdown.Schedule{{0, 20}, {10, 5}, {2_000_000_000, 10}}
	pods := list(pod("long", critical(), withGrace(1000)), pod("nil", critical()), pod("short", critical(), withGrace(3)))

	plan := shutdown.NewPlan(s, pods, shutdown.PlanOptions{})
	require.Equal(t, map[string]int64{"long": 35, "nil": 10, "short": 3}, granted(plan))
	require.Zero(t, plan.Buckets[1].End, "skipped")
	require.Zero(t, plan.Buckets[2].Start)
	require.Equal(t, 35*time.Second, plan.Buckets[2].End)

	plan = shutdown.NewPlan(s, pods, shutdown.PlanOptions{NoRollOver: true})
	require.Equal(t, map[string]int64{"long": 10, "nil": 10, "short": 3}, granted(plan))
	require.Equal(t, 10*time.Second, plan.Buckets[2].End)
}

func TestNewPlanRollsOverBetweenBuckets(t *testing.T) {
	s := shutdown.Schedule{{0, 20}, {10, 5}, {2_000_000_000, 10}}
	plan := shutdown.NewPlan(s, list(pod("low", withGrace(99)), pod("high", critical(), withGrace(99))), shutdown.PlanOptions{})
	require.Equal(t, map[string]int64{"low": 20, "high": 15}, granted(plan), "the first may use all of its own")
	require.Equal(t, 20*time.Second, plan.Buckets[2].Start)
}

func TestNewPlanFitsTheLimit(t *testing.T) {
	pods := list(pod("normal", withGrace(30)), pod("critical", critical(), withGrace(30)))
	for _, c := range []struct {
		limit            time.Duration
		normal, critical int64
	}{
		{0, 20, 10},
		{time.Hour, 20, 10},
		{29500 * time.Millisecond, 19, 10},
		{5 * time.Second, 0, 5},
		{-1, 0, 0},
	} {
		plan := shutdown.NewPlan(twoBuckets(), pods, shutdown.PlanOptions{Limit: c.limit})
		require.Equal(t, map[string]int64{"normal": c.normal, "critical": c.critical}, granted(plan), c.limit)
		require.Equal(t, []int64{20, 10}, []int64{plan.Buckets[0].WantedSeconds, plan.Buckets[1].WantedSeconds})
		require.Equal(t, seconds(plan.Schedule), []int64{plan.Buckets[0].Seconds, plan.Buckets[1].Seconds})
	}
}

// A bucket without time is signalled with 0 and not waited for, rolled over or not.
func TestNewPlanOfABucketWithoutTime(t *testing.T) {
	plan := shutdown.NewPlan(shutdown.Schedule{{0, 20}, {5, 0}}, list(pod("p", withPriority(5), withGrace(9))), shutdown.PlanOptions{})
	require.Equal(t, map[string]int64{"p": 0}, granted(plan))
	require.Equal(t, plan.Buckets[1].Start, plan.Buckets[1].End)
}

func TestNewPlanKeepsReserves(t *testing.T) {
	pods := list(pod("normal", withGrace(99)), pod("nil"), pod("critical", critical(), withGrace(4)))
	for name, c := range map[string]struct {
		unmount, flush time.Duration
		normal         int64
	}{
		"none":                  {0, 0, 20},
		"negative":              {-time.Hour, -time.Hour, 20},
		"one":                   {3 * time.Second, 0, 17},
		"both":                  {3 * time.Second, time.Second, 16},
		"fractions":             {1500 * time.Millisecond, 100 * time.Millisecond, 18},
		"half at most":          {time.Hour, time.Hour, 10},
		"half at most, saturat": {math.MaxInt64, math.MaxInt64, 10},
		"one more than half":    {0, 11 * time.Second, 10},
	} {
		plan := shutdown.NewPlan(twoBuckets(), pods, shutdown.PlanOptions{UnmountReserve: c.unmount, FlushReserve: c.flush})
		require.Equal(t, map[string]int64{"normal": c.normal, "nil": c.normal, "critical": 4}, granted(plan), name)
	}
}

// With roll-over the reserves are a part of what there is, and half of that.
func TestNewPlanReservesOfWhatRolledOver(t *testing.T) {
	s := shutdown.Schedule{{0, 20}, {2_000_000_000, 4}}
	plan := shutdown.NewPlan(s, list(pod("long", critical(), withGrace(99)), pod("nil", critical())),
		shutdown.PlanOptions{UnmountReserve: 6 * time.Second})
	require.Equal(t, map[string]int64{"long": 18, "nil": 2}, granted(plan), "a pod that asks for nothing gets what it would have without")
}

func TestNewPlanOfOddInput(t *testing.T) {
	plan := shutdown.NewPlan(nil, list(pod("p")), shutdown.PlanOptions{})
	require.Empty(t, plan.Buckets)
	require.Empty(t, plan.Warnings)

	plan = shutdown.NewPlan(twoBuckets(), list(nil, pod("p", withGrace(-5)), nil), shutdown.PlanOptions{})
	require.Equal(t, []shutdown.PlannedPod{{Pod: plan.Buckets[0].Pods[0].Pod}}, plan.Buckets[0].Pods, "nil pods are left out, and less than none is none")

	huge := shutdown.Schedule{{0, math.MaxInt64}, {1, math.MaxInt64}}
	greedy := list(pod("a", withGrace(math.MaxInt64)), pod("b", withPriority(1), withGrace(math.MaxInt64)))
	for _, noRollOver := range []bool{false, true} {
		plan = shutdown.NewPlan(huge, greedy, shutdown.PlanOptions{NoRollOver: noRollOver})
		require.Equal(t, math.MaxInt64/int64(time.Second), granted(plan)["a"], "the longest time there is")
		require.Zero(t, granted(plan)["b"], "none is left after it")
	}
}

// pickPods draws pods with every mix of fields that a plan reads.
func pickPods(r *rand.Rand) []*v1.Pod {
	pods := []*v1.Pod{}
	for i := range r.IntN(8) {
		p := pod(strconv.Itoa(i))
		if r.IntN(2) == 0 {
			withPriority(int32(pick(r)))(p)
		}
		if r.IntN(2) == 0 {
			withGrace(pick(r))(p)
		}
		withClass([]string{"", "system-node-critical", "gold"}[r.IntN(3)])(p)
		withAnnotation(source, []string{"api", "file"}[r.IntN(2)])(p)
		pods = append(pods, p, nil)
	}
	return pods
}

func FuzzNewPlan(f *testing.F) {
	f.Add(uint64(1), int64(0), int64(0), int64(0), false)
	f.Add(uint64(2), int64(time.Minute), int64(time.Second), int64(time.Second), true)
	f.Add(uint64(3), int64(math.MinInt64), int64(math.MaxInt64), int64(math.MaxInt64), false)
	f.Fuzz(func(t *testing.T, seed uint64, limit, unmount, flush int64, noRollOver bool) {
		r := rand.New(rand.NewPCG(seed, 0))
		s, pods := pickSchedule(r), pickPods(r)
		opts := shutdown.PlanOptions{
			Limit:          time.Duration(limit),
			UnmountReserve: time.Duration(unmount),
			FlushReserve:   time.Duration(flush),
			NoRollOver:     noRollOver,
		}
		before := fmt.Sprint(s, len(pods), opts)
		copies := make([]*v1.Pod, len(pods))
		for i, p := range pods {
			copies[i] = p.DeepCopy()
		}
		plan := shutdown.NewPlan(s, pods, opts)
		require.Equal(t, copies, pods, "a pod was changed")
		require.Equal(t, before, fmt.Sprint(s, len(pods), opts), "an argument was changed")
		checkPlan(t, s, pods, opts, plan)
		checkRollOverTakesNothing(t, s, pods, opts)
	})
}

// checkRollOverTakesNothing: no pod gets less because time rolls over, unless the
// ends saturate, after three centuries.
func checkRollOverTakesNothing(t *testing.T, s shutdown.Schedule, pods []*v1.Pod, opts shutdown.PlanOptions) {
	t.Helper()
	if s.Total() == math.MaxInt64 {
		return
	}
	opts.NoRollOver = true
	without := granted(shutdown.NewPlan(s, pods, opts))
	opts.NoRollOver = false
	for name, seconds := range granted(shutdown.NewPlan(s, pods, opts)) {
		require.GreaterOrEqual(t, seconds, without[name], name)
	}
}

// checkPlan: every pod is in its bucket once and gets neither more than it asks
// for nor more than there is, and the buckets follow each other within the limit.
func checkPlan(t *testing.T, s shutdown.Schedule, pods []*v1.Pod, opts shutdown.PlanOptions, plan shutdown.Plan) {
	t.Helper()
	require.Len(t, plan.Buckets, len(s))
	seen, at := map[*v1.Pod]bool{}, time.Duration(0)
	for i, b := range plan.Buckets {
		require.LessOrEqual(t, b.Seconds, b.WantedSeconds)
		require.Equal(t, at, b.Start)
		require.LessOrEqual(t, b.Start, b.End)
		require.LessOrEqual(t, b.End, plan.Schedule.End(i), "past its end")
		at = b.End
		for _, p := range b.Pods {
			require.False(t, seen[p.Pod])
			seen[p.Pod] = true
			require.Equal(t, opts.Priority(p.Pod), p.Priority)
			require.Equal(t, s.Index(p.Priority), i)
			require.GreaterOrEqual(t, p.GrantedSeconds, int64(0))
			require.LessOrEqual(t, p.GrantedSeconds, p.WantedSeconds)
			require.LessOrEqual(t, time.Duration(p.GrantedSeconds), (b.End-b.Start)/time.Second, "more than its bucket has")
		}
	}
	if opts.Limit != 0 {
		require.LessOrEqual(t, at, max(opts.Limit, 0))
	}
	if len(s) > 0 {
		require.Len(t, seen, len(pods)/2, "a pod was lost")
	}
}

// BenchmarkNewPlan stands beside the kubelet's way, a list per group that grows.
func BenchmarkNewPlan(b *testing.B) {
	s := shutdown.Schedule{{0, 60}, {1000, 30}, {100_000, 20}, {2_000_000_000, 10}}
	pods := make([]*v1.Pod, 10_000)
	for i := range pods {
		pods[i] = pod(strconv.Itoa(i), withPriority(int32(i%4)*1000), withGrace(30))
	}
	b.Run("plan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			shutdown.NewPlan(s, pods, shutdown.PlanOptions{})
		}
	})
	b.Run("plain grouping", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			groups := make([][]*v1.Pod, len(s))
			for _, p := range pods {
				i := s.Index(*p.Spec.Priority)
				groups[i] = append(groups[i], p)
			}
		}
	})
}
