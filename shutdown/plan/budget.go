package plan

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// containerFloor is the shortest timeout of a container's stop, which may end after the
// grace period of its pod.
const containerFloor = time.Duration(graceperiod.MinimumContainerSeconds) * time.Second

// Budget is the time of a drain, part by part. Every part is 0 or more.
type Budget struct {
	// Hold is the time of the hold before the first bucket.
	Hold time.Duration
	// Publish is the time in which the node's state is published.
	Publish time.Duration
	// Schedule is the pods' time, ascending by priority.
	Schedule Schedule
	// Reserves has, for each bucket of Schedule, the time of its other steps. It is
	// zero for a bucket of 0 s.
	Reserves []Reserve
	// Floor is the 2 s in which containers stop whose grace period is used up.
	Floor time.Duration
	// Margin is how long before the end of the host's delay the lock is released.
	Margin time.Duration
}

// Reserve is the time that a bucket has for its steps other than the kills.
type Reserve struct {
	Readiness time.Duration // before the kills: the pods are marked as not ready
	Unmount   time.Duration // after the kills: the pods' volumes are unmounted
	Statuses  time.Duration // after the unmounts: the final statuses are acknowledged
}

// total returns the sum of the reserve. It saturates at the longest duration.
func (r Reserve) total() time.Duration {
	return saturatingAdd(saturatingAdd(r.Readiness, r.Unmount), r.Statuses)
}

// within returns the reserve shortened to a total, each part in proportion.
func (r Reserve) within(total time.Duration) Reserve {
	parts := apportion([]time.Duration{r.Readiness, r.Unmount, r.Statuses}, total)
	return Reserve{Readiness: parts[0], Unmount: parts[1], Statuses: parts[2]}
}

// NewBudget returns the budget that a drain by a schedule, ascending by priority, needs.
// Its Total is the delay to request from the host. The Limit of the options is not
// applied; [Budget.Fit] does that.
func NewBudget(s Schedule, opts Options) Budget {
	b := Budget{
		Hold:     orDefault(opts.HoldTimeout, DefaultHoldTimeout, opts.Hooks.Hold),
		Publish:  orDefault(opts.PublishTimeout, DefaultPublishTimeout, opts.Hooks.Publish),
		Schedule: slices.Clone(s),
		Floor:    containerFloor,
		Margin:   orDefault(opts.ReleaseMargin, DefaultReleaseMargin, true),
	}
	for i := range b.Schedule {
		b.Schedule[i].Seconds = max(b.Schedule[i].Seconds, 0)
	}
	b.setReserves(opts.reserve())
	return b
}

// setReserves gives the same reserve to each bucket that has time.
func (b *Budget) setReserves(each Reserve) {
	b.Reserves = make([]Reserve, len(b.Schedule))
	for i := range b.Schedule {
		if b.Schedule[i].Seconds > 0 {
			b.Reserves[i] = each
		}
	}
}

// Total returns the sum of all parts. It saturates at the longest duration.
func (b Budget) Total() time.Duration {
	return saturatingAdd(saturatingAdd(b.Hold, b.Publish), saturatingAdd(b.buckets(), saturatingAdd(b.Floor, b.Margin)))
}

// buckets returns the time of all buckets with their reserves. It saturates.
func (b Budget) buckets() time.Duration {
	var sum time.Duration
	for i := range b.Schedule {
		sum = saturatingAdd(sum, b.bucket(i))
	}
	return sum
}

// bucket returns the time of bucket i with its reserve.
func (b Budget) bucket(i int) time.Duration {
	return saturatingAdd(b.Schedule[i].time(), b.reserve(i).total())
}

// reserve returns the reserve of bucket i, which is zero if Reserves is too short.
func (b Budget) reserve(i int) Reserve {
	if i < len(b.Reserves) {
		return b.Reserves[i]
	}
	return Reserve{}
}

// Overhead returns the time of publishing and of all reserves: the steps of a drain
// other than the hold and the kills. It saturates at the longest duration.
func (b Budget) Overhead() time.Duration {
	sum := b.Publish
	for _, reserve := range b.Reserves {
		sum = saturatingAdd(sum, reserve.total())
	}
	return sum
}

// apportion shortens parts, in place and in proportion, so that their sum is total at
// most. It changes nothing if the sum is not more already.
func apportion(parts []time.Duration, total time.Duration) []time.Duration {
	sums := make([]time.Duration, len(parts)) // of each part and those after it
	var sum time.Duration
	for i := len(parts) - 1; i >= 0; i-- {
		sum = saturatingAdd(sum, parts[i])
		sums[i] = sum
	}
	for i := range parts {
		if sums[i] > total {
			hi, lo := bits.Mul64(uint64(parts[i]), uint64(total))
			quotient, _ := bits.Div64(hi, lo, uint64(sums[i]))
			parts[i] = time.Duration(quotient)
		}
		total -= parts[i]
	}
	return parts
}

// saturatingAdd adds two durations that are not negative.
func saturatingAdd(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
