package plan

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

const (
	// containersFloor is 2 s, the shortest timeout of a container's stop. A preStop hook may use up the whole
	// grace period: the container then stops up to 2 s after the end of the grace period.
	containersFloor = time.Duration(graceperiod.MinimumContainerSeconds) * time.Second
	// wantedMargin is the time at the end of a drain for storing the report and releasing the inhibitor lock.
	wantedMargin = 500 * time.Millisecond
	// leastMargin is reserved even under a short limit, so that the drain ends before the host's limit does.
	leastMargin = 100 * time.Millisecond
)

// Budget divides the time of a drain among its parts. [NewBudget] returns the budget to request from the host,
// and [Budget.Fit] shortens it to the host's limit. Every value is 0 or more. WaitEnd and End count from the
// announcement of the shutdown; the other fields are lengths of time.
type Budget struct {
	// Prepare is for Options.Prepare of package shutdown, before the first list of pods.
	Prepare time.Duration `json:"prepareNanoseconds"`
	// Hold is the longest pause before the first kill, in which another program can move its work away
	// (shutdown.Options.Hold).
	Hold time.Duration `json:"holdNanoseconds"`
	// Publish is for publishing the node state.
	Publish time.Duration `json:"publishNanoseconds"`
	// Buckets are the buckets of the schedule, ascending by priority.
	Buckets []BucketBudget `json:"buckets"`
	// Floor follows the last bucket. It is for containers whose grace period is used up: each still gets
	// 2 s to stop. It is 2 s, unless Fit has shortened it.
	Floor time.Duration `json:"floorNanoseconds"`
	// Margin follows Floor, up to End. It is for storing the report and releasing the lock.
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

// otherSteps returns the bucket's time for everything but the kills: readiness marks, unmounts and final statuses.
func (b *BucketBudget) otherSteps() time.Duration { return sum(b.Readiness, b.Unmount, b.Statuses) }

// NewBudget returns the budget of a drain by a schedule. Buckets has the schedule's buckets ascending by
// priority, even if the schedule is not. NewBudget does not apply Options.Limit: pass Total to [Options.Cap]
// for the delay to request from the host, and the granted delay to [Budget.Fit].
func NewBudget(s Schedule, opts Options) Budget {
	s, _ = s.sorted() // New returns the warnings
	b := Budget{
		Prepare: stepTime(opts.Steps.Prepare, opts.PrepareTimeout, 2*time.Second),
		Hold:    stepTime(opts.Steps.Hold, opts.HoldTimeout, 10*time.Second),
		Publish: stepTime(opts.Steps.Publish, opts.PublishTimeout, 2*time.Second),
		Buckets: make([]BucketBudget, len(s)),
		Floor:   containersFloor,
		Margin:  wantedMargin,
	}
	for i, scheduled := range s {
		bucket := BucketBudget{Priority: scheduled.Priority, Seconds: max(scheduled.Seconds, 0)}
		bucket.Pods = graceperiod.Duration(bucket.Seconds)
		if bucket.Pods > 0 { // a bucket of 0 s is not waited for, so its other steps need no time
			bucket.Readiness = stepTime(opts.Steps.Readiness, time.Second, time.Second) // no option sets it
			bucket.Unmount = stepTime(opts.Steps.Unmount, opts.UnmountTimeout, 2*time.Second)
			bucket.Statuses = stepTime(opts.Steps.Statuses, opts.StatusesTimeout, time.Second)
		}
		b.Buckets[i] = bucket
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

// Beside returns the time that the drain needs beside the kills: to publish the node state, and for the readiness,
// unmount and status steps of all buckets.
func (b Budget) Beside() time.Duration {
	total := b.Publish
	for i := range b.Buckets {
		total = sum(total, b.Buckets[i].otherSteps())
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
		b.shortenOtherParts(left - pods)
	} else {
		b.shortenPods(left, occupied)
	}
	b.setEnds()
	return b
}

// shortenOtherParts makes all parts but Prepare and the pods fit into left, which is the time that those two leave.
// It serves the parts in the order that [Budget.Fit] lists: each gets what it wants while time is left, so that
// the last ones, floor and hold, may get nothing.
func (b *Budget) shortenOtherParts(left time.Duration) {
	// give returns wanted, or left if that is less, and subtracts the result from left.
	give := func(wanted time.Duration) time.Duration {
		given := min(wanted, left)
		left -= given
		return given
	}
	firstOfMargin := give(min(b.Margin, leastMargin))
	// Publishing and the buckets' other steps, which are all but the kills, are shortened in proportion.
	if given := give(b.Beside()); given < b.Beside() {
		parts := append(make([]*time.Duration, 0, 1+3*len(b.Buckets)), &b.Publish)
		for i := range b.Buckets {
			bucket := &b.Buckets[i]
			parts = append(parts, &bucket.Readiness, &bucket.Unmount, &bucket.Statuses)
		}
		shorten(parts, given)
	}
	b.Margin = firstOfMargin + give(b.Margin-firstOfMargin)
	b.Floor = give(b.Floor)
	b.Hold = give(b.Hold)
}

// shortenPods shortens the pods' time to left, which is too short for all buckets. The other parts get nothing.
// Buckets with pods are served first; buckets without pods share the rest.
func (b *Budget) shortenPods(left time.Duration, occupied []bool) {
	b.Hold, b.Publish, b.Floor, b.Margin = 0, 0, 0, 0
	var withPods, withoutPods []*time.Duration
	var needed time.Duration // sum of withPods
	for i := range b.Buckets {
		bucket := &b.Buckets[i]
		bucket.Readiness, bucket.Unmount, bucket.Statuses = 0, 0, 0
		if hasPods := i < len(occupied) && occupied[i]; hasPods {
			withPods, needed = append(withPods, &bucket.Pods), sum(needed, bucket.Pods)
		} else {
			withoutPods = append(withoutPods, &bucket.Pods)
		}
	}
	shorten(withPods, min(left, needed))
	shorten(withoutPods, max(left-needed, 0))
}

// shorten shortens parts in proportion until their sum is limit, if their sum is more. It does not scale each part, but
// the end of each part: the sum up to and including it. So the parts add up to exactly limit in spite of rounding, and a
// longer limit never makes a part end earlier.
func shorten(parts []*time.Duration, limit time.Duration) {
	var total time.Duration
	for _, part := range parts {
		total = sum(total, *part)
	}
	var end, previousScaledEnd time.Duration
	for _, part := range parts {
		end = sum(end, *part)
		scaledEnd := scaled(end, limit, total)
		*part, previousScaledEnd = scaledEnd-previousScaledEnd, scaledEnd
	}
}

// scaled returns part * limit / all, or part if all is at most limit. part is at most all.
func scaled(part, limit, all time.Duration) time.Duration {
	if all <= limit {
		return part
	}
	// The product may need 128 bits. The quotient fits into 64, because part <= all.
	hi, lo := bits.Mul64(uint64(limit), uint64(part))
	quotient, _ := bits.Div64(hi, lo, uint64(all))
	return time.Duration(quotient)
}

// setEnds sets WaitEnd and the End of each bucket, from the parts and b.End, which is their sum. WaitEnd is at least 100 ms
// before End, even if the margin is shorter.
func (b *Budget) setEnds() {
	b.WaitEnd = max(b.End-max(b.Margin, leastMargin), 0)
	end := b.beforeBuckets()
	for i := range b.Buckets {
		bucket := &b.Buckets[i]
		end = sum(end, bucket.Pods, bucket.otherSteps())
		bucket.End = end
	}
}

// beforeBuckets returns the time from the announcement of the shutdown to the first bucket.
func (b *Budget) beforeBuckets() time.Duration { return sum(b.Prepare, b.Hold, b.Publish) }

// schedule returns the schedule that the budget was made from: Fit leaves Seconds as the schedule has them.
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
