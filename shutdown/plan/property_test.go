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
		Hooks:       plan.Hooks{Hold: yes(), Publish: yes(), Readiness: yes(), Unmount: yes(), Statuses: yes()},
		HoldTimeout: span(), PublishTimeout: span(), ReadinessReserve: span(),
		UnmountReserve: span(), FlushReserve: span(), ReleaseMargin: span(),
		NoRollOver: r.IntN(2) == 0,
	}
}

// FuzzFit checks the properties of Budget.Fit.
func FuzzFit(f *testing.F) {
	for seed, limit := range []time.Duration{0, 1, time.Second, 5 * time.Second, 30 * time.Second, 34 * time.Second, time.Minute, math.MaxInt64, math.MinInt64} {
		f.Add(uint64(seed), int64(limit), int64(time.Second))
	}
	f.Fuzz(func(t *testing.T, seed uint64, limit, more int64) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := pickSchedule(r)
		if len(s) > 0 && seed%2 == 0 {
			s[0].Seconds = math.MinInt64 // Schedule itself gives no negative ones
		}
		before := slices.Clone(s)
		wanted := plan.NewBudget(s, pickOptions(r, false))
		fitted := wanted.Fit(time.Duration(limit))
		require.Equal(t, before, s, "an argument was changed")
		checkWithin(t, fitted, time.Duration(limit))
		checkLessOnly(t, wanted, fitted)
		checkOrder(t, wanted, fitted, time.Duration(limit))
		if larger := limit + max(more, 0); larger > limit {
			checkMonotone(t, fitted, wanted.Fit(time.Duration(larger)))
		}
		checkWithin(t, fitted.Fit(time.Duration(limit)), time.Duration(limit))
	})
}

// parts returns all parts of a budget but the pods' time.
func parts(b plan.Budget) []time.Duration {
	all := []time.Duration{b.Hold, b.Floor, b.Publish, b.Margin}
	for _, r := range b.Reserves {
		all = append(all, r.Readiness, r.Unmount, r.Statuses)
	}
	return all
}

// checkWithin checks that no part is negative, and that the sum is at most the limit.
func checkWithin(t *testing.T, b plan.Budget, limit time.Duration) {
	t.Helper()
	for _, part := range parts(b) {
		require.GreaterOrEqual(t, part, time.Duration(0), "%+v", b)
	}
	for _, bucket := range b.Schedule {
		require.GreaterOrEqual(t, bucket.Seconds, int64(0))
	}
	margin := b.Margin
	b.Margin = 0
	require.LessOrEqual(t, b.Total(), max(limit, 0), "%+v", b)
	require.LessOrEqual(t, margin, max(limit, 0)/10)
}

// checkLessOnly checks that no part grows, and that each bucket keeps its priority.
func checkLessOnly(t *testing.T, wanted, fitted plan.Budget) {
	t.Helper()
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

// checkOrder checks that a part is shortened only when those before it are at their
// minimum, that the highest bucket loses its time last, and that no bucket loses a second
// that would fit.
func checkOrder(t *testing.T, wanted, fitted plan.Budget, limit time.Duration) {
	t.Helper()
	limit = max(limit, 0)
	if limit >= wanted.Total() && limit < math.MaxInt64 {
		wanted.Margin = fitted.Margin
		require.Equal(t, wanted, fitted, "there is time for all of it")
	}
	if fitted.Floor < wanted.Floor {
		require.Zero(t, fitted.Hold, "the hold gives way before the floor")
	}
	if fitted.Overhead() < wanted.Overhead() && slices.Equal(fitted.Schedule, wanted.Schedule) {
		require.Zero(t, fitted.Floor, "the floor gives way before what is done beside the kills")
	}
	for i, bucket := range fitted.Schedule {
		if bucket.Seconds == wanted.Schedule[i].Seconds {
			continue
		}
		for j := range i {
			require.Zero(t, fitted.Schedule[j].Seconds, "%v was cut to %v", wanted.Schedule, fitted.Schedule)
		}
		checkSecondTooMuch(t, wanted, fitted, i, limit)
	}
}

// minReserve returns the shortest reserve of a bucket.
func minReserve(r plan.Reserve, seconds int64) time.Duration {
	var all time.Duration
	for _, part := range []time.Duration{r.Readiness, r.Unmount, r.Statuses} {
		all += min(part, time.Second) // as far as it matters
	}
	return min(all, time.Second, graceperiod.Duration(seconds)/10)
}

// checkSecondTooMuch checks that another second for bucket i does not fit, even with the
// minimum of all other parts.
func checkSecondTooMuch(t *testing.T, wanted, fitted plan.Budget, i int, limit time.Duration) {
	t.Helper()
	left := limit - fitted.Margin - min(wanted.Publish, limit/10)
	for j := i + 1; j < len(fitted.Schedule); j++ {
		seconds := fitted.Schedule[j].Seconds
		left -= graceperiod.Duration(seconds) + minReserve(wanted.Reserves[j], seconds)
	}
	one := fitted.Schedule[i].Seconds + 1
	require.Greater(t, graceperiod.Duration(one), left-minReserve(wanted.Reserves[i], one), "%v was cut to %v by %v", wanted.Schedule, fitted.Schedule, limit)
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
	for seed, limit := range []time.Duration{0, -1, time.Second, 5 * time.Second, 30 * time.Second, 34 * time.Second, time.Minute, math.MaxInt64, math.MinInt64} {
		f.Add(uint64(seed), int64(limit))
	}
	f.Fuzz(func(t *testing.T, seed uint64, limit int64) {
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
			checkAgainstTheKubelet(t, s, opts, p)
			checkRollOverTakesNothing(t, s, pods, opts)
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
	seen, at := map[*v1.Pod]bool{}, p.Fitted.Hold+p.Fitted.Publish
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
			if !saturates(s) {
				require.LessOrEqual(t, graceperiod.Duration(pod.GrantedSeconds)-p.Fitted.Margin, b.End-b.Start, "more than its bucket has")
			}
		}
	}
	if opts.Limit != 0 {
		require.LessOrEqual(t, p.Release, max(opts.Limit, 0))
	}
	if len(s) > 0 {
		require.Len(t, seen, len(pods)/2, "a pod was lost")
	}
}

// checkAgainstTheKubelet checks that no pod gets less than from a kubelet if the host
// waits for as long as was requested.
func checkAgainstTheKubelet(t *testing.T, s plan.Schedule, opts plan.Options, p plan.Plan) {
	t.Helper()
	if opts.Limit < 0 || opts.Limit > 0 && opts.Limit < p.Wanted.Total() {
		return
	}
	for i, b := range p.Buckets {
		for _, pod := range b.Pods {
			require.GreaterOrEqual(t, pod.GrantedSeconds, graceperiod.ForNodeShutdown(pod.Pod, s[i].Seconds), pod.Pod.Name)
		}
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

// FuzzWindows steps through a drain whose buckets use a random part of their time: every
// bucket starts and ends in time, and has at least its time in the schedule.
func FuzzWindows(f *testing.F) {
	f.Add(uint64(1), int64(time.Minute))
	f.Add(uint64(2), int64(0))
	f.Add(uint64(3), int64(5*time.Second))
	f.Fuzz(func(t *testing.T, seed uint64, limit int64) {
		r := rand.New(rand.NewPCG(seed, 0))
		var s plan.Schedule
		for i := range 1 + r.IntN(10) {
			s = append(s, plan.Bucket{Priority: int32(i), Seconds: r.Int64N(40)})
		}
		opts := pickOptions(r, true)
		a := plan.Announcement{Received: announced(), Late: r.IntN(4) == 0}
		if limit != 0 {
			a.HostEnd = after(time.Duration(limit) % time.Hour)
		}
		checkDrain(t, r, plan.NewTimetable(s, opts, a))
	})
}

// checkDrain steps through a drain in which every part takes a random part of its time.
func checkDrain(t *testing.T, r *rand.Rand, tt plan.Timetable) {
	t.Helper()
	take := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(max(d, 0)) + 1)) }
	now, latest, left := later(announced().Add(take(tt.First().Sub(announced()))), tt.NotBefore()), tt.First(), time.Duration(0)
	for i, bucket := range tt.Schedule() {
		if r.IntN(4) == 0 {
			left = tt.Skip(i, left)
			latest = latest.Add(graceperiod.Duration(bucket.Seconds) + reserveOf(tt, i))
			continue
		}
		require.False(t, now.After(latest), "bucket %d starts late", i)
		w := tt.Window(i, now, left)
		if bucket.Seconds == 0 {
			require.Zero(t, w.Grace(now))
			continue
		}
		reserve := tt.Budget().Reserves[i]
		require.False(t, w.Ready.Before(earlier(now.Add(reserve.Readiness), tt.Release())), "marks have all of their time")
		killed := now.Add(take(reserve.Readiness))
		require.GreaterOrEqual(t, w.Grace(killed), graceperiod.Duration(bucket.Seconds), "bucket %d has less than its own", i)
		require.LessOrEqual(t, w.Grace(killed), graceperiod.Duration(bucket.Seconds)+left)
		used := take(w.Grace(killed))
		latest = latest.Add(graceperiod.Duration(bucket.Seconds) + reserveOf(tt, i))
		require.False(t, w.End.After(latest), "bucket %d ends late", i)
		require.False(t, w.KillsEnd(killed).After(tt.Release()))
		require.False(t, w.UnmountsEnd(killed).After(w.End))
		now, left = killed.Add(used).Add(take(reserve.Unmount)).Add(take(reserve.Statuses)), w.Left(killed, used)
		require.GreaterOrEqual(t, left, time.Duration(0))
	}
}

func reserveOf(tt plan.Timetable, i int) time.Duration {
	r := tt.Budget().Reserves[i]
	return r.Readiness + r.Unmount + r.Statuses
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
