package plan

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// containerFloor is the grace that every container gets beyond its pod's.
const containerFloor = time.Duration(graceperiod.MinimumContainerSeconds) * time.Second

// Budget is the time of a drain, part by part. All of it is 0 or more.
type Budget struct {
	// Hold is the time of the one who is waited for before the first bucket.
	Hold time.Duration
	// Publish is the time in which the node's state is published.
	Publish time.Duration
	// Schedule is the pods' time, ascending by priority.
	Schedule Schedule
	// Reserves has what each bucket of Schedule has beside its pods' time. It is
	// zero for a bucket without time.
	Reserves []Reserve
	// Floor is the 2 s in which containers end that have used up their pod's grace.
	Floor time.Duration
	// Margin is how long before the host's own end the lock is released.
	Margin time.Duration
}

// Reserve is what a bucket has beside its pods' time.
type Reserve struct {
	Readiness time.Duration // before the kills: the pods leave their services
	Unmount   time.Duration // after the kills: their volumes are unmounted
	Statuses  time.Duration // after that: their final statuses are acknowledged
}

// total saturates.
func (r Reserve) total() time.Duration {
	return saturatingAdd(saturatingAdd(r.Readiness, r.Unmount), r.Statuses)
}

// within is the reserve cut to a total, each part in proportion.
func (r Reserve) within(total time.Duration) Reserve {
	parts := apportion([]time.Duration{r.Readiness, r.Unmount, r.Statuses}, total)
	return Reserve{Readiness: parts[0], Unmount: parts[1], Statuses: parts[2]}
}

// NewBudget is what a drain by this schedule, ascending by priority, needs: what the
// host is asked for. It does not look at the limit of the options.
func NewBudget(s Schedule, opts Options) Budget {
	b := Budget{
		Hold:     span(opts.HoldTimeout, DefaultHoldTimeout, opts.Hooks.Hold),
		Publish:  span(opts.PublishTimeout, DefaultPublishTimeout, opts.Hooks.Publish),
		Schedule: slices.Clone(s),
		Floor:    containerFloor,
		Margin:   span(opts.ReleaseMargin, DefaultReleaseMargin, true),
	}
	for i := range b.Schedule {
		b.Schedule[i].Seconds = max(b.Schedule[i].Seconds, 0)
	}
	b.setReserves(opts.reserve())
	return b
}

// setReserves gives each bucket that has time the same reserve.
func (b *Budget) setReserves(each Reserve) {
	b.Reserves = make([]Reserve, len(b.Schedule))
	for i := range b.Schedule {
		if b.Schedule[i].Seconds > 0 {
			b.Reserves[i] = each
		}
	}
}

// Total is the whole budget. It saturates at the longest duration.
func (b Budget) Total() time.Duration {
	return saturatingAdd(saturatingAdd(b.Hold, b.Publish), saturatingAdd(b.buckets(), saturatingAdd(b.Floor, b.Margin)))
}

// buckets is the time of all buckets, their reserves included. It saturates.
func (b Budget) buckets() time.Duration {
	var sum time.Duration
	for i := range b.Schedule {
		sum = saturatingAdd(sum, b.bucket(i))
	}
	return sum
}

// bucket is the time of one bucket with its reserve.
func (b Budget) bucket(i int) time.Duration {
	return saturatingAdd(b.Schedule[i].time(), b.reserve(i).total())
}

// reserve is the reserve of one bucket; one that was left out is zero.
func (b Budget) reserve(i int) Reserve {
	if i < len(b.Reserves) {
		return b.Reserves[i]
	}
	return Reserve{}
}

// Beside is what is spent on publishing and on the reserves: what a drain does beside
// the kills, apart from the hold. It saturates.
func (b Budget) Beside() time.Duration {
	sum := b.Publish
	for _, reserve := range b.Reserves {
		sum = saturatingAdd(sum, reserve.total())
	}
	return sum
}

// apportion cuts parts, in place and in proportion, so that they add up to total at
// most. Nothing is cut if they do so already.
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

// saturatingAdd adds two spans that are not negative.
func saturatingAdd(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
