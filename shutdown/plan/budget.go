package plan

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

const (
	// containersFloor is the shortest timeout of a container's stop, which may end after the
	// grace period of its pod.
	containersFloor = time.Duration(graceperiod.MinimumContainerSeconds) * time.Second
	// wantedMargin is asked for: storing the report and releasing the lock take some of it.
	wantedMargin = 500 * time.Millisecond
	// leastMargin is kept however little time the host leaves.
	leastMargin = 100 * time.Millisecond
)

// Budget is the time of a drain, part by part, and when its waits end at the latest.
// [NewBudget] returns what a drain asks for, and [Budget.Fit] what a host's limit leaves of
// that. Every value is 0 or more. Ends count from the event that announces the shutdown.
type Budget struct {
	// Prepare is the time in which what would start pods again is stopped, before the
	// first list of pods.
	Prepare time.Duration `json:"prepareNanoseconds"`
	// Hold is the time of the hold before the first bucket.
	Hold time.Duration `json:"holdNanoseconds"`
	// Publish is the time in which the node's state is published.
	Publish time.Duration `json:"publishNanoseconds"`
	// Buckets are the buckets of the schedule, in its order.
	Buckets []BucketBudget `json:"buckets"`
	// Floor is the time after the last bucket for containers whose grace period is used
	// up: 2 s if nothing shortens it.
	Floor time.Duration `json:"floorNanoseconds"`
	// Margin is the time between the Floor and the End.
	Margin time.Duration `json:"marginNanoseconds"`
	// WaitEnd is when the drain stops all waiting: the Margin before the End, and at least
	// 100 ms before it.
	WaitEnd time.Duration `json:"waitEndNanoseconds"`
	// End is when the drain is over: at the end of the limit, or when all is done that it
	// asks for.
	End time.Duration `json:"endNanoseconds"`
}

// BucketBudget is the time of one bucket, in the order of its steps.
type BucketBudget struct {
	// Priority and Seconds are those of the schedule.
	Priority int32 `json:"priority"`
	Seconds  int64 `json:"seconds"`
	// Readiness is for the marks that the pods are not ready, before the kills.
	Readiness time.Duration `json:"readinessNanoseconds"`
	// Pods is for the kills: Seconds, or less if the limit is too short for the schedule.
	Pods time.Duration `json:"podsNanoseconds"`
	// Unmount is for the unmounts of the pods' volumes.
	Unmount time.Duration `json:"unmountNanoseconds"`
	// Statuses is for the acknowledgements of the final statuses.
	Statuses time.Duration `json:"statusesNanoseconds"`
	// End is when the bucket ends at the latest.
	End time.Duration `json:"endNanoseconds"`
}

// beside returns the time of the steps other than the kills.
func (b *BucketBudget) beside() time.Duration { return sum(b.Readiness, b.Unmount, b.Statuses) }

// NewBudget returns the budget that a drain by a schedule, ascending by priority, asks for.
// Its Total is the delay to request from the host, or less ([Options.Cap]). The Limit of
// the options is not applied; [Budget.Fit] does that.
func NewBudget(s Schedule, opts Options) Budget {
	b := Budget{
		Prepare: orDefault(opts.PrepareTimeout, 2*time.Second, opts.Steps.Prepare),
		Hold:    orDefault(opts.HoldTimeout, 10*time.Second, opts.Steps.Hold),
		Publish: orDefault(opts.PublishTimeout, 2*time.Second, opts.Steps.Publish),
		Buckets: make([]BucketBudget, len(s)),
		Floor:   containersFloor,
		Margin:  wantedMargin,
	}
	for i, bucket := range s {
		of := BucketBudget{Priority: bucket.Priority, Seconds: max(bucket.Seconds, 0)}
		if of.Pods = graceperiod.Duration(of.Seconds); of.Pods > 0 {
			if opts.Steps.Readiness {
				of.Readiness = time.Second
			}
			of.Unmount = orDefault(opts.UnmountTimeout, 2*time.Second, opts.Steps.Unmount)
			of.Statuses = orDefault(opts.StatusesTimeout, time.Second, opts.Steps.Statuses)
		}
		b.Buckets[i] = of
	}
	b.End = b.Total()
	b.setEnds()
	return b
}

// Total returns the sum of all parts. It saturates at the longest duration, and so do all
// sums of this package.
func (b Budget) Total() time.Duration {
	return sum(b.Prepare, b.Hold, b.Pods(), b.Beside(), b.Floor, b.Margin)
}

// Pods returns the sum of the pods' time in all buckets.
func (b Budget) Pods() (total time.Duration) {
	for i := range b.Buckets {
		total = sum(total, b.Buckets[i].Pods)
	}
	return total
}

// Beside returns the time of publishing, and of the steps of all buckets other than the
// kills.
func (b Budget) Beside() time.Duration {
	total := b.Publish
	for i := range b.Buckets {
		total = sum(total, b.Buckets[i].beside())
	}
	return total
}

// Fit returns the budget for a host that waits for limit; a negative limit counts as 0. b is
// not changed.
//
// Prepare has at most half of the limit, and is taken from it first. What is left decides:
//
//   - It covers all parts: none is shortened.
//   - It covers the pods' time: no bucket loses any. The other parts share what is left: first
//     100 ms of the margin, then publishing and the steps of the buckets, in proportion, then
//     the rest of the margin, the floor, and the hold.
//   - It is less than the pods' time: nothing else has any, and all buckets are shortened in
//     proportion. Buckets without pods give way first. occupied says which buckets have pods;
//     one without an entry has none. If it is not known, pass nil: then none gives way.
//
// So a longer limit moves no end of a bucket to an earlier time.
func (b Budget) Fit(limit time.Duration, occupied []bool) Budget {
	b.Buckets = slices.Clone(b.Buckets)
	limit = max(limit, 0)
	b.Prepare = min(b.Prepare, limit/2)
	b.End = min(limit, b.Total())
	left := b.End - b.Prepare
	if pods := b.Pods(); left >= pods {
		b.share(left - pods)
	} else {
		b.scale(left, occupied)
	}
	b.setEnds()
	return b
}

// share leaves the parts other than Prepare and the pods' time so much in all.
func (b *Budget) share(left time.Duration) {
	take := func(asked time.Duration) time.Duration {
		taken := min(asked, left)
		left -= taken
		return taken
	}
	margin := take(min(b.Margin, leastMargin))
	if beside := take(b.Beside()); beside < b.Beside() {
		parts := append(make([]*time.Duration, 0, 1+3*len(b.Buckets)), &b.Publish)
		for i := range b.Buckets {
			of := &b.Buckets[i]
			parts = append(parts, &of.Readiness, &of.Unmount, &of.Statuses)
		}
		shorten(parts, beside)
	}
	b.Margin = margin + take(b.Margin-margin)
	b.Floor = take(b.Floor)
	b.Hold = take(b.Hold)
}

// scale leaves the pods' time so much, and nothing to all else.
func (b *Budget) scale(left time.Duration, occupied []bool) {
	b.Hold, b.Publish, b.Floor, b.Margin = 0, 0, 0, 0
	var used, empty []*time.Duration
	var needed time.Duration
	for i := range b.Buckets {
		of := &b.Buckets[i]
		of.Readiness, of.Unmount, of.Statuses = 0, 0, 0
		if i < len(occupied) && occupied[i] {
			used, needed = append(used, &of.Pods), sum(needed, of.Pods)
		} else {
			empty = append(empty, &of.Pods)
		}
	}
	shorten(used, min(left, needed))
	shorten(empty, max(left-needed, 0))
}

// shorten shortens parts in proportion until their sum is limit. The sum of the first n parts
// never falls when limit grows, for every n.
func shorten(parts []*time.Duration, limit time.Duration) {
	var total, before, used time.Duration
	for _, part := range parts {
		total = sum(total, *part)
	}
	for _, part := range parts {
		before = sum(before, *part)
		until := proportion(limit, before, total)
		*part, used = until-used, until
	}
}

// proportion returns the part of limit that is to limit what part is to all. part is at most
// all.
func proportion(limit, part, all time.Duration) time.Duration {
	if all <= limit {
		return part
	}
	hi, lo := bits.Mul64(uint64(limit), uint64(part))
	quotient, _ := bits.Div64(hi, lo, uint64(all))
	return time.Duration(quotient)
}

// setEnds sets the ends. Those of the buckets count back from the End. They also count
// forward, because the sum of what follows a bucket may have saturated.
func (b *Budget) setEnds() {
	b.WaitEnd = max(b.End-max(b.Margin, leastMargin), 0)
	at := b.beforeBuckets()
	for i := range b.Buckets {
		of := &b.Buckets[i]
		at = sum(at, of.Pods, of.beside())
		of.End = min(at, b.End)
	}
	after := sum(b.Floor, b.Margin)
	for i := range slices.Backward(b.Buckets) {
		of := &b.Buckets[i]
		of.End = max(of.End, b.End-after)
		after = sum(after, of.Pods, of.beside())
	}
}

// beforeBuckets returns the time before the first bucket.
func (b *Budget) beforeBuckets() time.Duration { return sum(b.Prepare, b.Hold, b.Publish) }

// schedule returns the schedule of the budget, which is not shortened.
func (b *Budget) schedule() Schedule {
	s := make(Schedule, len(b.Buckets))
	for i := range b.Buckets {
		s[i] = Bucket{Priority: b.Buckets[i].Priority, Seconds: b.Buckets[i].Seconds}
	}
	return s
}

// sum adds up durations of 0 or more. It saturates at the longest duration.
func sum(durations ...time.Duration) (total time.Duration) {
	for _, d := range durations {
		if total > math.MaxInt64-d {
			return math.MaxInt64
		}
		total += d
	}
	return total
}
