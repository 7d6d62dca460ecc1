package plan

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

const (
	// containersFloor is the shortest timeout of a container's stop, which may end after the grace period
	// of the pod.
	containersFloor = time.Duration(graceperiod.MinimumContainerSeconds) * time.Second
	// wantedMargin is for storing the report and releasing the lock.
	wantedMargin = 500 * time.Millisecond
	// leastMargin is reserved under every limit.
	leastMargin = 100 * time.Millisecond
)

// Budget is the time of a drain, part by part. [NewBudget] returns the budget to request from the host, and
// [Budget.Fit] shortens it to the host's limit. Every value is 0 or more. WaitEnd and End count from the
// announcement of the shutdown.
type Budget struct {
	// Prepare is for Options.Prepare of package shutdown, before the first list of pods.
	Prepare time.Duration `json:"prepareNanoseconds"`
	// Hold is for the hold before the first bucket.
	Hold time.Duration `json:"holdNanoseconds"`
	// Publish is for publishing the node state.
	Publish time.Duration `json:"publishNanoseconds"`
	// Buckets are the buckets of the schedule, in its order.
	Buckets []BucketBudget `json:"buckets"`
	// Floor is for containers whose grace period is used up, after the last bucket; 2 s before Fit.
	Floor time.Duration `json:"floorNanoseconds"`
	// Margin is the time between Floor and End.
	Margin time.Duration `json:"marginNanoseconds"`
	// WaitEnd is when the drain stops waiting: Margin before End, but at least 100 ms before End.
	WaitEnd time.Duration `json:"waitEndNanoseconds"`
	// End is when the drain is over at the latest: Total, or the limit if that is less.
	End time.Duration `json:"endNanoseconds"`
}

// BucketBudget is the time of one bucket, in the order of its steps.
type BucketBudget struct {
	// Priority and Seconds are those of the schedule.
	Priority int32 `json:"priority"`
	Seconds  int64 `json:"seconds"`
	// Readiness is for marking the pods as not ready, before the kills.
	Readiness time.Duration `json:"readinessNanoseconds"`
	// Pods is for the kills: Seconds, or less if the limit is too short for the schedule.
	Pods time.Duration `json:"podsNanoseconds"`
	// Unmount is for the unmounts of the pods' volumes.
	Unmount time.Duration `json:"unmountNanoseconds"`
	// Statuses is for the acknowledgements of the final statuses.
	Statuses time.Duration `json:"statusesNanoseconds"`
	// End is when the bucket ends at the latest, counted from the announcement of the shutdown.
	End time.Duration `json:"endNanoseconds"`
}

// beside returns the time of the steps other than the kills.
func (b *BucketBudget) beside() time.Duration { return sum(b.Readiness, b.Unmount, b.Statuses) }

// NewBudget returns the budget of a drain by a schedule, which must be ascending by priority. It does not
// apply Options.Limit: pass Total to [Options.Cap] for the delay to request from the host, and the granted
// delay to [Budget.Fit].
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

// Total returns the sum of all parts. Like all sums in this package it saturates at the longest duration.
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

// Beside returns the time of publishing and of all steps of the buckets other than the kills.
func (b Budget) Beside() time.Duration {
	total := b.Publish
	for i := range b.Buckets {
		total = sum(total, b.Buckets[i].beside())
	}
	return total
}

// Fit returns the budget for a host that grants limit; a negative limit counts as 0. b is not changed.
//
// Prepare gets at most half of the limit. The rest of the limit is distributed as follows:
//
//   - If it covers all parts, none is shortened.
//   - If it covers the pods' time, the pods keep all of it. The other parts share the remainder, in this
//     order: 100 ms of the margin; publishing and the other steps of the buckets, in proportion; the
//     rest of the margin; the floor; the hold.
//   - Otherwise the other parts get nothing, and the buckets are shortened in proportion, those without pods
//     first. occupied says, by index, which buckets have pods; missing entries are false. Pass nil if
//     that is unknown: all buckets are then treated alike.
//
// A longer limit never makes a bucket end earlier.
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

// share distributes the time that Prepare and the pods leave.
func (b *Budget) share(left time.Duration) {
	take := func(wanted time.Duration) time.Duration {
		taken := min(wanted, left)
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

// scale distributes a time that is too short for the pods: to the pods alone.
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

// shorten shortens parts in proportion until their sum is limit. It scales the cumulative sums, so that none
// of these shrinks when limit grows.
func shorten(parts []*time.Duration, limit time.Duration) {
	var total, before, used time.Duration
	for _, part := range parts {
		total = sum(total, *part)
	}
	for _, part := range parts {
		before = sum(before, *part)
		until := scaled(before, limit, total)
		*part, used = until-used, until
	}
}

// scaled returns part * limit / all, or part if all fits into limit. part is at most all.
func scaled(part, limit, all time.Duration) time.Duration {
	if all <= limit {
		return part
	}
	hi, lo := bits.Mul64(uint64(limit), uint64(part))
	quotient, _ := bits.Div64(hi, lo, uint64(all))
	return time.Duration(quotient)
}

// setEnds sets WaitEnd and the End of each bucket. It counts the buckets back from End, and also forward because
// the sum of the later buckets may have saturated.
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

// schedule returns the configured schedule, without the limit.
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
