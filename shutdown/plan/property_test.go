package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// shortTimeout returns a random timeout: negative, 0 (the default), or up to 5 s.
func shortTimeout(r *rand.Rand) time.Duration {
	return []time.Duration{0, -1, time.Duration(r.Int64N(int64(5 * time.Second)))}[r.IntN(3)]
}

// anyTimeout returns a random timeout, which may be an extreme value.
func anyTimeout(r *rand.Rand) time.Duration {
	if r.IntN(5) == 0 {
		return time.Duration(randomValue(r))
	}
	return shortTimeout(r)
}

// randomOptions returns random steps, with timeouts that the function timeout returns.
func randomOptions(r *rand.Rand, timeout func(*rand.Rand) time.Duration) plan.Options {
	likely := func() bool { return r.IntN(3) > 0 }
	return plan.Options{
		Steps:          plan.Steps{Prepare: likely(), Hold: likely(), Publish: likely(), Readiness: likely(), Unmount: likely(), Statuses: likely()},
		PrepareTimeout: timeout(r), HoldTimeout: timeout(r), PublishTimeout: timeout(r),
		UnmountTimeout: timeout(r), StatusesTimeout: timeout(r),
		NoRollOver: r.IntN(2) == 0,
	}
}

// randomCase is a schedule with the pods of a node and a limit.
type randomCase struct {
	schedule plan.Schedule
	opts     plan.Options
	limit    time.Duration
	occupied []bool // which buckets have pods; nil: unknown
	pods     []*v1.Pod
}

// String returns the case as it is shown in the message of a failed check.
func (c randomCase) String() string {
	return fmt.Sprintf("%v within %v, occupied %v, %+v", c.schedule, c.limit, c.occupied, c.opts)
}

// failureContext is printed with a failed check.
type failureContext struct {
	seed   uint64
	random randomCase
	fitted plan.Budget
}

// String returns the text after the message of a failed check.
func (s failureContext) String() string {
	return fmt.Sprintf("seed %d: %v: %+v", s.seed, s.random, s.fitted)
}

// newRandomCase returns the case of a seed. Its limit is likely to shorten something.
func newRandomCase(seed uint64) (c randomCase) {
	r := rand.New(rand.NewPCG(seed, 0))
	c.opts = randomOptions(r, shortTimeout)
	// Up to six buckets with up to two pods each, in one of three magnitudes.
	secondsBelow := []int64{3, 12, 121}[r.IntN(3)]
	for i := range 1 + r.IntN(6) {
		c.schedule = append(c.schedule, plan.Bucket{Priority: int32(i), Seconds: r.Int64N(secondsBelow)})
		pods := r.IntN(3)
		c.occupied = append(c.occupied, pods > 0)
		for range pods {
			p := pod(strconv.Itoa(len(c.pods)), withPriority(int32(i)))
			if r.IntN(4) > 0 {
				withGrace(r.Int64N(secondsBelow * 2))(p)
			}
			c.pods = append(c.pods, p)
		}
	}
	if r.IntN(4) == 0 {
		c.occupied = nil
	}
	// A limit that is just enough for the pods, too short for them, too short for all parts, or rarely long enough.
	podsTime, total := c.schedule.Total(), plan.NewBudget(c.schedule, c.opts).Total()
	if r.IntN(8) == 0 {
		c.limit = podsTime
		return c
	}
	longest := []time.Duration{podsTime, total, total + 10*second}[r.IntN(3)]
	c.limit = time.Duration(r.Int64N(int64(longest) + 1))
	if r.IntN(3) == 0 {
		c.limit = c.limit.Truncate(second)
	}
	return c
}

// parts returns the durations of all parts of a budget, but not the times at which they end.
func parts(b plan.Budget) []time.Duration {
	all := []time.Duration{b.Prepare, b.Hold, b.Publish, b.Floor, b.Margin}
	for _, bucket := range b.Buckets {
		all = append(all, bucket.Readiness, bucket.Pods, bucket.Unmount, bucket.Statuses)
	}
	return all
}

// checkRule fails the test if ok is false. require is too slow for 100,000 cases.
func checkRule(t *testing.T, ok bool, about fmt.Stringer, rule string, args ...any) {
	if !ok {
		t.Helper()
		t.Fatalf("%s\n%v", fmt.Sprintf(rule, args...), about)
	}
}

// checkBudget checks what Fit has made of a budget (wanted): no part is negative or longer than in wanted, all parts
// together fit into the limit, and the ends are in order and within the limit.
func checkBudget(t *testing.T, wanted, fitted plan.Budget, limit time.Duration, about fmt.Stringer) {
	t.Helper()
	withFittedPrepare := wanted
	withFittedPrepare.Prepare = fitted.Prepare
	checkRule(t, fitted.End == min(max(limit, 0), withFittedPrepare.Total()), about, "the drain must end at the limit or after all parts, not at %v", fitted.End)
	checkRule(t, fitted.Total() <= fitted.End, about, "the parts take %v", fitted.Total())
	checkRule(t, fitted.Prepare == min(wanted.Prepare, max(limit, 0)/2), about, "Prepare must get its time or half of the limit")
	checkRule(t, fitted.WaitEnd == max(fitted.End-max(fitted.Margin, 100*ms), 0), about, "waits must end the margin before the end, not at %v", fitted.WaitEnd)
	wantedParts := parts(wanted)
	for i, part := range parts(fitted) {
		checkRule(t, 0 <= part && part <= wantedParts[i], about, "part %d is %v of %v", i, part, wantedParts[i])
	}
	previousEnd := time.Duration(0)
	for i, bucket := range fitted.Buckets {
		checkRule(t, bucket.Priority == wanted.Buckets[i].Priority && bucket.Seconds == wanted.Buckets[i].Seconds, about, "bucket %d has another priority or other seconds", i)
		checkRule(t, previousEnd <= bucket.End && bucket.End <= fitted.End, about, "bucket %d ends at %v", i, bucket.End)
		previousEnd = bucket.End
	}
}

// Fit shortens 100,000 random budgets to random limits. All parts fit into the limit. Either the pods keep all their time,
// or the buckets with pods have at least their share. A longer limit makes no bucket end earlier.
func TestFitInvariantsOnRandomSchedules(t *testing.T) {
	for seed := range uint64(100_000) {
		c := newRandomCase(seed)
		wanted := plan.NewBudget(c.schedule, c.opts)
		fitted := wanted.Fit(c.limit, c.occupied)
		about := failureContext{seed, c, fitted}
		r := rand.New(rand.NewPCG(seed, 1)) // not the values from which the case was made
		longerBy := []time.Duration{3, second, time.Minute}[r.IntN(3)]
		longer := c.limit + time.Duration(r.Int64N(int64(longerBy))) // by less than longerBy
		withLonger := wanted.Fit(longer, c.occupied)
		checkRule(t, fitted.WaitEnd <= withLonger.WaitEnd, about, "a limit of %v moves the end of all waits to %v", longer, withLonger.WaitEnd)
		for i, bucket := range fitted.Buckets {
			checkRule(t, bucket.End <= withLonger.Buckets[i].End, about, "a limit of %v moves the end of bucket %d to %v", longer, i, withLonger.Buckets[i].End)
		}
		checkBudget(t, wanted, fitted, c.limit, about)
		checkWindows(t, fitted, about)
		if fitted.End-fitted.Prepare >= c.schedule.Total() {
			checkCovered(t, wanted, fitted, about)
		} else {
			checkProportion(t, wanted, fitted, about)
		}
	}
}

// checkWindows checks that a bucket that starts at the end of the previous one has time for all of its parts.
func checkWindows(t *testing.T, b plan.Budget, about failureContext) {
	t.Helper()
	start := b.Prepare + b.Hold + b.Publish
	for i, bucket := range b.Buckets {
		checkRule(t, start+bucket.Readiness+bucket.Pods+bucket.Unmount+bucket.Statuses <= bucket.End, about, "the parts of bucket %d end after it", i)
		start = bucket.End
	}
	checkRule(t, start+b.Floor+b.Margin <= b.End, about, "the floor and the margin do not fit")
}

// checkCovered checks a budget whose limit covers the schedule: every bucket keeps its time and ends no earlier than in
// the kubelet, and the other parts are shortened in order.
func checkCovered(t *testing.T, wanted, fitted plan.Budget, about failureContext) {
	t.Helper()
	kubeletsEnd := fitted.Prepare // the end of the bucket in the kubelet
	for i, bucket := range fitted.Buckets {
		kubeletsEnd += graceperiod.Duration(bucket.Seconds)
		checkRule(t, bucket.Pods == wanted.Buckets[i].Pods, about, "bucket %d loses time", i)
		checkRule(t, bucket.End >= kubeletsEnd, about, "bucket %d ends earlier than in the kubelet", i)
	}
	lessBeside, lessMargin, lessFloor := fitted.Beside() < wanted.Beside(), fitted.Margin < wanted.Margin, fitted.Floor < wanted.Floor
	if lessBeside {
		checkRule(t, fitted.Margin <= 100*ms, about, "the margin must be shortened before the steps")
	}
	if lessBeside || lessMargin {
		checkRule(t, fitted.Floor == 0, about, "the floor must be shortened before the margin and the steps")
	}
	if lessBeside || lessMargin || lessFloor {
		checkRule(t, fitted.Hold == 0, about, "the hold must be shortened first")
	}
	checkRule(t, fitted.Total() == fitted.End, about, "time is unused")
}

// checkProportion checks a budget whose limit is below the schedule: buckets with pods get at least their share, other
// parts get nothing, and buckets without pods get only what the others leave.
func checkProportion(t *testing.T, wanted, fitted plan.Budget, about failureContext) {
	t.Helper()
	left := fitted.End - fitted.Prepare
	checkRule(t, fitted.Beside()+fitted.Hold+fitted.Floor+fitted.Margin == 0, about, "other parts than the pods have time")
	checkRule(t, fitted.Pods() == left, about, "the pods have %v of %v", fitted.Pods(), left)
	share := float64(left) / float64(wanted.Pods())
	podsLackTime, emptyBucketHasTime := false, false
	for i, bucket := range fitted.Buckets {
		whole := wanted.Buckets[i].Pods
		if about.random.occupied == nil || about.random.occupied[i] {
			const rounding = 1000 // ns
			checkRule(t, float64(bucket.Pods)+rounding >= share*float64(whole), about, "bucket %d has less than its proportion", i)
			podsLackTime = podsLackTime || bucket.Pods < whole
		} else {
			emptyBucketHasTime = emptyBucketHasTime || bucket.Pods > 0
		}
	}
	checkRule(t, !podsLackTime || !emptyBucketHasTime, about, "an empty bucket has time that a bucket with pods lacks")
}

// New is called for 30,000 random schedules. If the limit covers the schedule, each pod gets at least the seconds that the
// kubelet would give it. Without roll-over (later buckets get the time that lower ones leave unused) no pod gets more than
// in the kubelet. No grace period ends later than the drain. Neither a longer limit nor roll-over gives a pod less.
func TestNewInvariantsOnRandomSchedules(t *testing.T) {
	for seed := range uint64(30_000) {
		c := newRandomCase(seed)
		c.opts.Limit = c.limit
		if c.limit == 0 {
			c.opts.Limit = -1 // 0 would mean that there is no limit
		}
		p := plan.New(c.schedule, c.pods, c.opts)
		about := failureContext{seed, c, p.Fitted}
		// Fitted is the budget, shortened to the limit. Prepare comes before the buckets, and takes up to half of the limit.
		isCovered := p.Fitted.End-p.Fitted.Prepare >= c.schedule.Total()
		for i, b := range p.Buckets {
			for _, planned := range b.Pods {
				granted, kubelet := planned.GrantedSeconds, graceperiod.ForNodeShutdown(planned.Pod, c.schedule[i].Seconds)
				checkRule(t, granted >= kubelet || !isCovered, about, "pod %s has %d s, but %d s in the kubelet", planned.Pod.Name, granted, kubelet)
				checkRule(t, granted <= kubelet || !c.opts.NoRollOver, about, "pod %s has %d s without roll-over", planned.Pod.Name, granted)
				const tolerance = 100 * ms // Window.Seconds adds this to the time left before it rounds down to seconds
				checkRule(t, planned.Start+graceperiod.Duration(granted) <= p.Fitted.End+tolerance, about, "the %d s of pod %s end after the drain", granted, planned.Pod.Name)
			}
		}
		longer, rollOver := c.opts, c.opts
		longer.Limit = c.limit + second
		rollOver.NoRollOver = false
		withLongerLimit := grantedByName(plan.New(c.schedule, c.pods, longer))
		withRollOver := grantedByName(plan.New(c.schedule, c.pods, rollOver))
		for name, seconds := range grantedByName(p) {
			checkRule(t, withRollOver[name] >= seconds, about, "roll-over leaves pod %s %d s of %d s", name, withRollOver[name], seconds)
			checkRule(t, withLongerLimit[name] >= seconds, about, "a longer limit leaves pod %s %d s of %d s", name, withLongerLimit[name], seconds)
		}
	}
}

// For any schedule, pods and limit, including extreme values, the budget fits into the limit, each pod is in its bucket, and
// New changes no argument.
func FuzzNew(f *testing.F) {
	for seed := range uint64(20) {
		for _, limit := range []time.Duration{0, -1, second, 5 * second, 30 * second, 34 * second, time.Minute, math.MaxInt64, math.MinInt64} {
			f.Add(seed, int64(limit))
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, limit int64) {
		r := rand.New(rand.NewPCG(seed, 0))
		s, pods := randomSchedule(r), randomPods(r)
		if len(s) > 0 && seed%5 == 0 {
			s[0].Seconds = math.MinInt64 // Config.Schedule returns no negative ones
		}
		opts := randomOptions(r, anyTimeout)
		opts.Limit = time.Duration(limit)
		before := fmt.Sprintf("%v %d %+v", s, len(pods), opts)
		copies := make([]*v1.Pod, len(pods))
		for i, p := range pods {
			copies[i] = p.DeepCopy()
		}
		p := plan.New(s, pods, opts)
		require.Equal(t, copies, pods, "a pod was changed")
		require.Equal(t, before, fmt.Sprintf("%v %d %+v", s, len(pods), opts), "an argument was changed")
		checkBudget(t, p.Wanted, p.Fitted, opts.Cap(math.MaxInt64), failureContext{random: randomCase{schedule: s, opts: opts}, fitted: p.Fitted})
		checkPlan(t, s, pods, opts, p)
	})
}

// randomPods returns pods with random values in the fields that a plan reads.
func randomPods(r *rand.Rand) []*v1.Pod {
	pods := []*v1.Pod{}
	for i := range r.IntN(8) {
		p := pod(strconv.Itoa(i))
		if r.IntN(2) == 0 {
			withPriority(int32(randomValue(r)))(p)
		}
		if r.IntN(2) == 0 {
			withGrace(randomValue(r))(p)
		}
		withClass([]string{"", "system-node-critical", "gold"}[r.IntN(3)])(p)
		withAnnotation(source, []string{"api", "file"}[r.IntN(2)])(p)
		pods = append(pods, p, nil)
	}
	return pods
}

// checkPlan checks that every pod is in its bucket, once, that it gets no more than it wants, and that the buckets follow
// each other until the release.
func checkPlan(t *testing.T, s plan.Schedule, pods []*v1.Pod, opts plan.Options, p plan.Plan) {
	t.Helper()
	about := fmt.Sprintf("%v: %+v", s, opts)
	require.Len(t, p.Buckets, len(s), about)
	seen := map[*v1.Pod]bool{}
	previousEnd := min(p.Fitted.Prepare+p.Fitted.Hold+p.Fitted.Publish, p.Release)
	for i, b := range p.Buckets {
		require.LessOrEqual(t, b.Seconds, b.WantedSeconds, about)
		require.Equal(t, previousEnd, b.Start, about)
		require.LessOrEqual(t, b.Start, b.End, about)
		require.LessOrEqual(t, b.End, p.Release, about)
		previousEnd = b.End
		for _, pod := range b.Pods {
			require.False(t, seen[pod.Pod])
			seen[pod.Pod] = true
			require.Equal(t, opts.Priority(pod.Pod), pod.Priority)
			require.Equal(t, s.Index(pod.Priority), i)
			require.GreaterOrEqual(t, pod.GrantedSeconds, int64(0))
			require.LessOrEqual(t, pod.GrantedSeconds, pod.WantedSeconds)
		}
	}
	require.LessOrEqual(t, p.Release, opts.Cap(math.MaxInt64))
	if len(s) > 0 {
		require.Len(t, seen, len(pods)/2, "a pod was lost; every second one of randomPods is nil")
	}
}
