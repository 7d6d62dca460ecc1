package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown/internal/windows"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// pickPods draws pods with random values in the fields that a plan reads.
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

// pickOptions draws hooks, and for each duration none, the default, a few seconds or,
// unless they are to be sane, an extreme.
func pickOptions(r *rand.Rand, sane bool) plan.Options {
	span := func() time.Duration {
		switch r.IntN(5) {
		case 0:
			return 0
		case 1:
			return -1
		case 2:
			if !sane {
				return time.Duration(pick(r))
			}
			fallthrough
		default:
			return time.Duration(r.Int64N(int64(5 * time.Second)))
		}
	}
	yes := func() bool { return r.IntN(3) > 0 }
	return plan.Options{
		Hooks:          plan.Hooks{Prepare: yes(), Hold: yes(), Publish: yes(), Readiness: yes(), Unmount: yes(), Statuses: yes()},
		PrepareTimeout: span(), HoldTimeout: span(), PublishTimeout: span(), ReadinessReserve: span(),
		UnmountReserve: span(), FlushReserve: span(), ReleaseMargin: span(),
		NoRollOver: r.IntN(2) == 0,
	}
}

// FuzzFit checks the properties of Budget.Fit.
func FuzzFit(f *testing.F) {
	for seed := range uint64(20) {
		for _, limit := range []time.Duration{0, 1, second, 5 * second, 30 * second, time.Minute, math.MaxInt64, math.MinInt64} {
			f.Add(seed, int64(limit), int64(second))
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, limit, more int64) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := pickSchedule(r)
		if len(s) > 0 && seed%5 == 0 {
			s[0].Seconds = math.MinInt64 // Schedule itself gives no negative ones
		}
		var needs []int64
		for range r.IntN(len(s) + 1) {
			needs = append(needs, pick(r))
		}
		wanted := plan.NewBudget(s, pickOptions(r, false))
		before := fmt.Sprint(s, needs, wanted)
		fitted := wanted.Fit(time.Duration(limit), needs)
		require.Equal(t, before, fmt.Sprint(s, needs, wanted), "an argument was changed")
		checkWithin(t, fitted, time.Duration(limit))
		checkLessOnly(t, wanted, fitted)
		checkOrder(t, wanted, fitted, max(time.Duration(limit), 0), needs)
		if larger := limit + max(more, 0); larger > limit {
			checkMonotone(t, fitted, wanted.Fit(time.Duration(larger), needs))
		}
		checkWithin(t, fitted.Fit(time.Duration(limit), nil), time.Duration(limit))
	})
}

// parts returns all parts of a budget but the pods' time.
func parts(b plan.Budget) []time.Duration {
	all := []time.Duration{b.Prepare, b.Hold, b.Floor, b.Publish, b.Margin}
	for _, r := range b.Reserves {
		all = append(all, r.Readiness, r.Unmount, r.Statuses)
	}
	return all
}

// checkWithin checks that no part is negative, and that the sum is at most the limit: of
// Prepare, which is not shortened, and without the margin, which has room in front of it.
func checkWithin(t *testing.T, b plan.Budget, limit time.Duration) {
	t.Helper()
	limit = max(limit, 0)
	for _, part := range parts(b) {
		require.GreaterOrEqual(t, part, time.Duration(0), "%+v", b)
	}
	for _, bucket := range b.Schedule {
		require.GreaterOrEqual(t, bucket.Seconds, int64(0))
	}
	require.LessOrEqual(t, b.Margin, limit/10)
	b.Margin = 0
	require.LessOrEqual(t, b.Total(), max(limit, b.Prepare), "%+v", b)
}

// checkLessOnly checks that no part grows, and that each bucket keeps its priority.
func checkLessOnly(t *testing.T, wanted, fitted plan.Budget) {
	t.Helper()
	require.Equal(t, wanted.Prepare, fitted.Prepare)
	more := parts(wanted)
	for i, part := range parts(fitted) {
		require.LessOrEqual(t, part, more[i])
	}
	require.Len(t, fitted.Schedule, len(wanted.Schedule))
	for i, bucket := range fitted.Schedule {
		require.Equal(t, wanted.Schedule[i].Priority, bucket.Priority)
		require.LessOrEqual(t, bucket.Seconds, wanted.Schedule[i].Seconds)
		if bucket.Seconds == 0 {
			require.Zero(t, fitted.Reserves[i])
		}
	}
}

// needed returns what the pods need: the schedule with the needs in place of its seconds,
// and what else a drain of these pods does beside the kills.
func needed(wanted plan.Budget, needs []int64) (s plan.Schedule, overhead time.Duration) {
	s, wanted.Reserves = slices.Clone(wanted.Schedule), slices.Clone(wanted.Reserves)
	for i := range s {
		if i < len(needs) {
			s[i].Seconds = min(s[i].Seconds, max(needs[i], 0))
		}
		if s[i].Seconds == 0 {
			wanted.Reserves[i] = plan.Reserve{}
		}
	}
	return s, wanted.Overhead()
}

// checkOrder checks that a part is shortened only when those before it have given way, and
// that nothing gives way that would fit.
func checkOrder(t *testing.T, wanted, fitted plan.Budget, limit time.Duration, needs []int64) {
	t.Helper()
	if limit >= wanted.Total() {
		wanted.Margin = fitted.Margin
		require.Equal(t, wanted, fitted, "there is time for all of it")
		return
	}
	pods, overhead := needed(wanted, needs)
	left := max(limit-wanted.Prepare, 0)
	isCut, hasMore, all := false, false, true
	for i, bucket := range fitted.Schedule {
		isCut = isCut || bucket.Seconds < pods[i].Seconds
		hasMore = hasMore || bucket.Seconds > pods[i].Seconds
		all = all && bucket.Seconds == wanted.Schedule[i].Seconds
	}
	require.Equal(t, left < pods.Total(), isCut, "pods are cut if they do not fit, and only then")
	switch {
	case isCut:
		require.Zero(t, fitted.Overhead()+fitted.Floor+fitted.Hold, "all else gives way before the pods")
		checkServed(t, pods, fitted.Schedule, left)
		return
	case fitted.Overhead() < overhead:
		require.Zero(t, fitted.Floor+fitted.Hold, "they give way before what is done beside the kills")
		require.Less(t, left-pods.Total(), overhead)
		checkShares(t, wanted, fitted, pods, left-pods.Total())
	case fitted.Floor < wanted.Floor:
		require.Zero(t, fitted.Hold, "the hold gives way before the floor")
	}
	if fitted.Hold < wanted.Hold || fitted.Floor < wanted.Floor || fitted.Overhead() < overhead {
		require.False(t, hasMore, "seconds that nobody needs give way first")
	} else if !all {
		require.Less(t, limit-fitted.Total(), second, "a second is left")
	}
	checkSpare(t, wanted.Schedule, fitted.Schedule, pods)
}

// checkServed checks that pods are served from the highest bucket down, each with the most
// whole seconds.
func checkServed(t *testing.T, pods, fitted plan.Schedule, left time.Duration) {
	t.Helper()
	for i := range slices.Backward(pods) {
		require.Equal(t, min(pods[i].Seconds, int64(left/second)), fitted[i].Seconds)
		left -= graceperiod.Duration(fitted[i].Seconds)
	}
}

// checkShares checks that publishing and the reserves have all of what is left, in
// proportion but for what goes to the highest buckets.
func checkShares(t *testing.T, wanted, fitted plan.Budget, pods plan.Schedule, left time.Duration) {
	t.Helper()
	highest := true // still a bucket that may have more than its share
	for i := range slices.Backward(pods) {
		r, w := fitted.Reserves[i], wanted.Reserves[i]
		if pods[i].Seconds == 0 || w == (plan.Reserve{}) {
			continue
		}
		sum := r.Readiness + r.Unmount + r.Statuses
		if !highest {
			require.True(t, sum == 0 || sum >= 100*time.Millisecond, "%v of %v", fitted, left)
		}
		highest = highest && sum > 0
	}
	require.True(t, fitted.Publish == 0 || fitted.Publish >= 100*time.Millisecond)
	require.LessOrEqual(t, fitted.Overhead(), left)
}

// checkSpare checks that the seconds that nobody needs go to the highest buckets with pods,
// then to the highest without.
func checkSpare(t *testing.T, wanted, fitted, pods plan.Schedule) {
	t.Helper()
	for i := range fitted {
		if fitted[i].Seconds == pods[i].Seconds {
			continue
		}
		for j := range fitted {
			if first := pods[j].Seconds > 0; first == (pods[i].Seconds > 0) && j > i || first && pods[i].Seconds == 0 {
				require.Equal(t, wanted[j].Seconds, fitted[j].Seconds, "bucket %d comes before %d", j, i)
			}
		}
	}
}

// checkMonotone checks that a longer limit takes no time from any bucket.
func checkMonotone(t *testing.T, fitted, more plan.Budget) {
	t.Helper()
	for i := range fitted.Schedule {
		require.LessOrEqual(t, fitted.Schedule[i].Seconds, more.Schedule[i].Seconds)
	}
}

// FuzzNew checks the properties of a plan.
func FuzzNew(f *testing.F) {
	for seed := range uint64(20) {
		for _, limit := range []time.Duration{0, -1, second, 5 * second, 30 * second, 34 * second, time.Minute, math.MaxInt64, math.MinInt64} {
			f.Add(seed, int64(limit), int64(second))
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, limit, more int64) {
		r := rand.New(rand.NewPCG(seed, 0))
		s, pods := pickSchedule(r), pickPods(r)
		opts := pickOptions(r, true)
		opts.Limit = time.Duration(limit)
		before := fmt.Sprintf("%v %d %+v", s, len(pods), opts)
		copies := make([]*v1.Pod, len(pods))
		for i, p := range pods {
			copies[i] = p.DeepCopy()
		}
		p := plan.New(s, pods, opts)
		require.Equal(t, copies, pods, "a pod was changed")
		require.Equal(t, before, fmt.Sprintf("%v %d %+v", s, len(pods), opts), "an argument was changed")
		checkPlan(t, s, pods, opts, p)
		if !saturates(s) {
			checkNeeds(t, s, pods, opts, p)
			checkRollOverTakesNothing(t, s, pods, opts)
			checkMoreTakesNothing(t, s, pods, opts, p, time.Duration(more))
		}
	})
}

// saturates reports whether the ends of a schedule saturate, so that the longest duration
// limits it.
func saturates(s plan.Schedule) bool { return s.Total() >= math.MaxInt64-time.Hour }

// checkPlan checks that every pod is in its bucket once, that it is granted neither more
// than its grace period nor more than there is, and that the buckets follow each other
// within the limit.
func checkPlan(t *testing.T, s plan.Schedule, pods []*v1.Pod, opts plan.Options, p plan.Plan) {
	t.Helper()
	require.Len(t, p.Buckets, len(s))
	seen, at := map[*v1.Pod]bool{}, min(windows.Sum(p.Fitted.Prepare, p.Fitted.Hold, p.Fitted.Publish), p.Release)
	for i, b := range p.Buckets {
		require.LessOrEqual(t, b.Seconds, b.WantedSeconds)
		require.Equal(t, at, b.Start)
		require.LessOrEqual(t, b.Start, b.End)
		require.LessOrEqual(t, b.End, p.Release)
		at = b.End
		for _, pod := range b.Pods {
			require.False(t, seen[pod.Pod])
			seen[pod.Pod] = true
			require.Equal(t, opts.Priority(pod.Pod), pod.Priority)
			require.Equal(t, s.Index(pod.Priority), i)
			require.GreaterOrEqual(t, pod.GrantedSeconds, int64(0))
			require.LessOrEqual(t, pod.GrantedSeconds, pod.WantedSeconds)
			if !saturates(s) && pod.GrantedSeconds > 0 {
				require.LessOrEqual(t, pod.Start+graceperiod.Duration(pod.GrantedSeconds), opts.Cap(math.MaxInt64), "no grace ends after the host's limit")
			}
		}
	}
	require.LessOrEqual(t, p.Release, opts.Cap(math.MaxInt64))
	if len(s) > 0 {
		require.Len(t, seen, len(pods)/2, "a pod was lost")
	}
}

// checkNeeds checks that each pod has what it gets from a kubelet if the limit has room for
// that, and that else no higher bucket is starved by a lower one.
func checkNeeds(t *testing.T, s plan.Schedule, pods []*v1.Pod, opts plan.Options, p plan.Plan) {
	t.Helper()
	var sum time.Duration
	for _, n := range s.Needs(pods, opts) {
		sum += graceperiod.Duration(n)
	}
	fits := sum <= max(opts.Cap(math.MaxInt64)-p.Wanted.Prepare, 0)
	starved := false
	for i := range slices.Backward(p.Buckets) {
		short := false
		for _, pod := range p.Buckets[i].Pods {
			kubelet := max(graceperiod.ForNodeShutdown(pod.Pod, s[i].Seconds), 0)
			if fits {
				require.GreaterOrEqual(t, pod.GrantedSeconds, kubelet, pod.Pod.Name)
			}
			if starved {
				require.Zero(t, pod.GrantedSeconds, "a higher bucket has less than it needs")
			}
			if opts.NoRollOver {
				require.LessOrEqual(t, pod.GrantedSeconds, kubelet, pod.Pod.Name)
			}
			short = short || pod.GrantedSeconds < kubelet
		}
		starved = starved || short
	}
}

// checkRollOverTakesNothing checks that no pod gets less because time rolls over.
func checkRollOverTakesNothing(t *testing.T, s plan.Schedule, pods []*v1.Pod, opts plan.Options) {
	t.Helper()
	opts.NoRollOver = true
	without := granted(plan.New(s, pods, opts))
	opts.NoRollOver = false
	for name, seconds := range granted(plan.New(s, pods, opts)) {
		require.GreaterOrEqual(t, seconds, without[name], name)
	}
}

// checkMoreTakesNothing checks that no pod gets less because the limit is longer.
func checkMoreTakesNothing(t *testing.T, s plan.Schedule, pods []*v1.Pod, opts plan.Options, p plan.Plan, more time.Duration) {
	t.Helper()
	if opts.Limit == 0 || opts.Limit > math.MaxInt64-max(more, 0) {
		return
	}
	if opts.Limit += max(more, 0); opts.Limit == 0 {
		return
	}
	longer := granted(plan.New(s, pods, opts))
	for name, seconds := range granted(p) {
		require.GreaterOrEqual(t, longer[name], seconds, name)
	}
}

// A limit of exactly the sum of a schedule leaves each pod what the kubelet gives it, with
// every step but Prepare.
func TestNewWithTheKubeletsSum(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := make(plan.Schedule, 1+r.IntN(6))
		var pods []*v1.Pod
		for i := range s {
			s[i] = plan.Bucket{Priority: int32(i), Seconds: r.Int64N(60)}
			for range r.IntN(4) {
				pods = append(pods, pod(strconv.Itoa(len(pods)), withPriority(int32(i)), withGrace(r.Int64N(90))))
			}
		}
		opts := plan.Options{Hooks: plan.Hooks{Hold: true, Publish: true, Readiness: true, Unmount: true, Statuses: true}, Limit: s.Total(), NoRollOver: true}
		if opts.Limit == 0 {
			opts.Limit = -1
		}
		for i, b := range plan.New(s, pods, opts).Buckets {
			for _, p := range b.Pods {
				require.Equal(t, graceperiod.ForNodeShutdown(p.Pod, s[i].Seconds), p.GrantedSeconds)
			}
		}
	}
}
