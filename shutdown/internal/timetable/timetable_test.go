package timetable_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const (
	second = time.Second
	ms     = time.Millisecond
)

// received returns the time at which the event is received.
func received() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

// after returns the time d after the event.
func after(d time.Duration) time.Time { return received().Add(d) }

// buckets returns a schedule: the seconds of its buckets are these, and their priorities 0, 1000, 2000 and so on.
func buckets(seconds ...int64) (s plan.Schedule) {
	for i, n := range seconds {
		s = append(s, plan.Bucket{Priority: int32(i) * 1000, Seconds: n})
	}
	return s
}

// allButPrepareAndHold returns all steps but these two.
func allButPrepareAndHold() plan.Steps {
	return plan.Steps{Publish: true, Readiness: true, Unmount: true, Statuses: true}
}

// noLimit is the argument limit for a host that waits as long as the drain needs.
const noLimit = time.Duration(0)

// requestWithin returns a request for a timetable of two buckets, 20 s and 10 s, if the host waits for limit.
func requestWithin(limit time.Duration, opts plan.Options) timetable.Request {
	r := timetable.Request{Schedule: buckets(20, 10), Options: opts, Received: received()}
	if limit != noLimit {
		r.HostEnd = after(limit)
	}
	return r
}

// tableWithin returns the timetable for requestWithin(limit, opts).
func tableWithin(limit time.Duration, opts plan.Options) *timetable.Table {
	return timetable.New(requestWithin(limit, opts))
}

// podWithGrace returns a pod with a grace period, in seconds.
func podWithGrace(seconds int64) *v1.Pod {
	return &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: &seconds}}
}

// podWithoutGrace returns a pod without a grace period.
func podWithoutGrace() *v1.Pod { return &v1.Pod{} }

// The drain stops waiting (waitEnd) 500 ms before its end, or 100 ms before if it has no more time than the 30 s of the schedule. The
// lock is released half-way between waitEnd and the end. The end is earlier than the steps need if the host or the operator grants less.
// If both grant enough, the drain stops waiting when its steps are over:
//
//   - without other steps after 32 s: the schedule of 30 s, and 2 s for containers that have used up their grace period,
//   - with all steps but Prepare and Hold after 42 s: 2 s more for publishing, and for each of the two buckets 1 s for
//     NotReady, 2 s for volumes and 1 s for final statuses,
//   - with every step after 54 s: 2 s more for Prepare and 10 s for Hold.
func TestTheDrainStopsWaitingBeforeItsEnd(t *testing.T) {
	most := plan.Options{Steps: allButPrepareAndHold()}
	every := most
	every.Steps.Prepare, every.Steps.Hold = true, true
	limited := plan.Options{Steps: allButPrepareAndHold(), Limit: 20 * second} // by the operator of the node
	for name, c := range map[string]struct {
		limit              time.Duration // what the host grants; noLimit: as long as the drain needs
		opts               plan.Options
		set                func(*timetable.Request) // nil: no step is over, and it is not known which buckets have pods
		waitEnd, releaseBy time.Duration            // after the event
	}{
		"the host grants without limit":                           {limit: noLimit, opts: most, waitEnd: 42 * second, releaseBy: 42250 * ms},
		"the host grants half an hour":                            {limit: 30 * time.Minute, opts: most, waitEnd: 42 * second, releaseBy: 42250 * ms},
		"the host grants the requested delay":                     {limit: 42500 * ms, opts: most, waitEnd: 42 * second, releaseBy: 42250 * ms},
		"the host grants the sum of the schedule":                 {limit: 30 * second, opts: most, waitEnd: 29900 * ms, releaseBy: 29950 * ms},
		"the host grants less than the schedule":                  {limit: 10 * second, opts: most, waitEnd: 9900 * ms, releaseBy: 9950 * ms},
		"the host's deadline has passed":                          {limit: -second, opts: most},
		"the operator's limit of 20 s":                            {opts: limited, waitEnd: 19900 * ms, releaseBy: 19950 * ms},
		"the operator's limit of 20 s, less than the host's 30 s": {limit: 30 * second, opts: limited, waitEnd: 19900 * ms, releaseBy: 19950 * ms},
		"the operator's limit of 20 s, more than the host's 10 s": {limit: 10 * second, opts: limited, waitEnd: 9900 * ms, releaseBy: 9950 * ms},
		"the operator's limit is negative: no time":               {limit: 30 * second, opts: plan.Options{Limit: -1}},
		"no other steps":                                          {limit: 30 * time.Minute, opts: plan.Options{}, waitEnd: 32 * second, releaseBy: 32250 * ms},
		"every step":                                              {opts: every, waitEnd: 54 * second, releaseBy: 54250 * ms},
		"Prepare is over":                                         {opts: every, set: func(r *timetable.Request) { r.Prepared = true }, waitEnd: 52 * second, releaseBy: 52250 * ms},
		"Hold is over":                                            {opts: every, set: func(r *timetable.Request) { r.Held = true }, waitEnd: 44 * second, releaseBy: 44250 * ms},
		"publishing is over":                                      {opts: every, set: func(r *timetable.Request) { r.Published = true }, waitEnd: 52 * second, releaseBy: 52250 * ms},
		"one bucket has pods: as if both had":                     {limit: 10 * second, opts: most, set: func(r *timetable.Request) { r.Occupied = []bool{true, false} }, waitEnd: 9900 * ms, releaseBy: 9950 * ms},
	} {
		r := requestWithin(c.limit, c.opts)
		if c.set != nil {
			c.set(&r)
		}
		made := timetable.New(r)
		require.Equal(t, after(c.waitEnd), made.WaitEnd(), name)
		require.Equal(t, after(c.releaseBy), made.ReleaseBy(), name)
	}
}

// The seconds of the two buckets add up to more than the longest time.Duration. The drain ends in more than 100 years, and not
// in the past.
func TestEndSaturates(t *testing.T) {
	r := requestWithin(noLimit, plan.Options{})
	r.Schedule = buckets(math.MaxInt64, math.MaxInt64)
	saturated := timetable.New(r)
	require.True(t, saturated.WaitEnd().After(after(100*365*24*time.Hour)))
}

// Before the first bucket, the drain waits for Prepare, Hold and publishing, one after the other. If the host grants less
// than the requested 54.5 s, these waits are shortened before the pods' 30 s are; they end with the drain at the latest.
func TestWaitsBeforeTheFirstBucket(t *testing.T) {
	opts := plan.Options{Steps: allButPrepareAndHold()}
	opts.Steps.Prepare, opts.Steps.Hold = true, true
	for limit, want := range map[time.Duration]struct{ holdEnd, publishEnd time.Duration }{
		time.Hour:    {holdEnd: 12 * second, publishEnd: 14 * second}, // 2 s for Prepare and 10 s for Hold, and then 2 s for publishing
		47500 * ms:   {holdEnd: 5 * second, publishEnd: 7 * second},   // 7 s less than requested: of its 10 s, Hold has 3 s, after 2 s of Prepare
		32 * second:  {holdEnd: 2 * second, publishEnd: 2 * second},   // the pods and Prepare keep their 30 s and 2 s, the others have none
		1000 * ms:    {holdEnd: 500 * ms, publishEnd: 500 * ms},       // Prepare has at most half
		150 * ms:     {holdEnd: 50 * ms, publishEnd: 50 * ms},         // the drain stops waiting 100 ms before the end
		-time.Second: {holdEnd: 0, publishEnd: 0},
	} {
		tt := tableWithin(limit, opts)
		require.Equal(t, after(want.holdEnd), tt.HoldEnd(), limit)
		require.Equal(t, after(want.publishEnd), tt.PublishEnd(), limit)
	}
}

// The host waits 35 s. Table.Plan returns what plan.New returns with the limit of 35 s, so the drain follows the plan that a
// user sees.
func TestPlanIsThatOfPackagePlan(t *testing.T) {
	opts := plan.Options{Steps: allButPrepareAndHold()}
	pods := []*v1.Pod{podWithGrace(99), podWithoutGrace()}
	tt := tableWithin(35*second, opts)
	opts.Limit = 35 * second
	require.Equal(t, plan.New(buckets(20, 10), pods, opts), tt.Plan(pods))
}

// When some buckets are over, the host announces its shutdown again with another deadline, once or twice. A deadline that
// is equal or later moves no time. An earlier one moves times earlier, by at most the difference. Both hold also if steps
// have left time unused.
func TestAnEarlierDeadlineOnlyMovesTimesEarlier(t *testing.T) {
	for seed := range uint64(100_000) {
		r := rand.New(rand.NewPCG(seed, 0))
		first := pickRequest(r)
		before := timetable.New(first)
		begin, end := first.Received, first.Received.Add(before.Budget.End)
		for range 1 + r.IntN(2) {
			left := int64(end.Sub(begin))
			passed := time.Duration(r.Int64N(left + 1))
			earlier := []time.Duration{ // by how much the deadline is earlier
				0,
				-time.Duration(r.Int64N(int64(time.Hour))), // it is later
				time.Duration(r.Int64N(100)),
				time.Duration(r.Int64N(left + int64(second))), // it may even have passed
			}[r.IntN(4)]
			next := pickRequest(r)
			next.Received, next.HostEnd, next.Old = begin.Add(passed), end.Add(-earlier), before
			next.DoneBuckets = r.IntN(len(first.Schedule) + 1)
			if r.IntN(8) == 0 {
				next.HostEnd, earlier = time.Time{}, 0 // no host waits
			}
			made := timetable.New(next)
			require.Equal(t, first.Schedule, made.Schedule())
			about := func() string {
				return fmt.Sprintf("seed %d: %+v, then %+v, %v earlier: %+v becomes %+v", seed, first, next, earlier, before.Budget, made.Budget)
			}
			checkMoved(t, before, made, max(earlier, 0), about)
			checkOver(t, next, made.Budget, about)
			before, begin = made, next.Received
			end = begin.Add(made.Budget.End)
		}
	}
}

// checkMoved requires that no end of the timetable before has moved to a later time in made, and that none has moved to an
// earlier time by more than atMost, unless it has passed. The buckets must still end in order.
func checkMoved(t *testing.T, before, made *timetable.Table, atMost time.Duration, about func() string) {
	t.Helper()
	now := made.At(0)
	oldEnds, ends := endTimes(before), endTimes(made)
	for i, end := range ends {
		old := times.Later(oldEnds[i], now) // an end that has passed is now
		isTooEarly := end.Before(old.Add(-atMost)) && end.After(now)
		if end.After(old) || isTooEarly {
			t.Fatalf("end %d moves from %v to %v\n%s", i, old, end, about())
		}
		if isLaterBucket := i > 0 && i < len(made.Budget.Buckets); isLaterBucket && end.Before(ends[i-1]) {
			t.Fatalf("bucket %d ends before the one below\n%s", i, about())
		}
	}
	require.NoError(t, made.Check())
}

// checkOver requires that the budget b of the request r has no time for steps and buckets that are over.
func checkOver(t *testing.T, r timetable.Request, b plan.Budget, about func() string) {
	t.Helper()
	isWrong := r.Prepared && b.Prepare > 0 || r.Held && b.Hold > 0 || r.Published && b.Publish > 0
	for _, done := range b.Buckets[:r.DoneBuckets] {
		isWrong = isWrong || done.Readiness+done.Pods+done.Unmount+done.Statuses > 0
	}
	if isWrong {
		t.Fatalf("time is reserved for what is over\n%s", about())
	}
}

// endTimes returns the ends of the buckets, then WaitEnd, and then the end of the drain.
func endTimes(tt *timetable.Table) (ends []time.Time) {
	for _, bucket := range tt.Budget.Buckets {
		ends = append(ends, tt.At(bucket.End))
	}
	return append(ends, tt.WaitEnd(), tt.At(tt.Budget.End))
}

// A drain of two buckets (20 s and 10 s) is under way when a new announcement moves its end 0 to 4 s earlier, at any time in the
// first bucket. The second bucket loses no more than these seconds. This holds if the host waits 30 s, 35 s or an hour, with and
// without steps besides the kills, with and without NoRollOver, and for pods with and without a grace period.
func TestALaterAnnouncementShortensABucketNoMoreThanItMust(t *testing.T) {
	for _, opts := range []plan.Options{{}, {NoRollOver: true}, {Steps: allButPrepareAndHold()}, {Steps: allButPrepareAndHold(), NoRollOver: true}} {
		for _, limit := range []time.Duration{30 * second, 35 * second, time.Hour} {
			before := tableWithin(limit, opts)
			secondBegins := before.At(before.Budget.Buckets[0].End)
			for earlier := time.Duration(0); earlier <= 4*second; earlier += second {
				for passed := time.Duration(0); passed <= 20*second; passed += 100 * ms {
					r := requestWithin(noLimit, opts)
					r.Received, r.HostEnd = after(passed), before.At(before.Budget.End-earlier)
					r.Old = before // New shortens this timetable
					shortened := timetable.New(r)
					for _, p := range []*v1.Pod{podWithGrace(99), podWithoutGrace()} {
						window := shortened.Window(1, secondBegins)
						require.GreaterOrEqual(t, window.Seconds(p, secondBegins), 10-int64(earlier/second), "%v within %v, %v earlier after %v", opts, limit, earlier, passed)
					}
				}
			}
		}
	}
}

// pickRequest draws a random request for a new timetable.
func pickRequest(r *rand.Rand) timetable.Request {
	flip := func() bool { return r.IntN(2) == 0 }
	timeout := func() time.Duration {
		return []time.Duration{0, 0, -1, 50 * ms, time.Duration(r.Int64N(int64(5 * second)))}[r.IntN(5)]
	}
	request := timetable.Request{Received: after(time.Duration(r.Int64N(int64(time.Minute)))), Prepared: flip(), Held: flip(), Published: flip()}
	request.Options = plan.Options{
		NoRollOver: r.IntN(4) == 0, HoldTimeout: timeout(), UnmountTimeout: timeout(),
		Steps: plan.Steps{Prepare: flip(), Hold: flip(), Publish: flip(), Readiness: flip(), Unmount: flip(), Statuses: flip()},
	}
	for i := range 1 + r.IntN(5) {
		request.Schedule = append(request.Schedule, plan.Bucket{Priority: int32(i), Seconds: r.Int64N(40)})
		request.Occupied = append(request.Occupied, flip())
	}
	if r.IntN(4) == 0 {
		request.Occupied = nil
	}
	if r.IntN(6) > 0 {
		total := request.Schedule.Total()
		longest := []time.Duration{total, 2*total + 20*second}[r.IntN(2)]
		request.HostEnd = request.Received.Add(time.Duration(r.Int64N(int64(longest) + 1)))
	}
	return request
}
