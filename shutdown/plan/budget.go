package plan

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/windows"
)

// Budget is the time of a drain, part by part. Every part is 0 or more.
type Budget struct {
	// Prepare is the time in which what would start pods again is stopped, before the
	// first list of pods.
	Prepare time.Duration `json:"prepareNanoseconds"`
	// Hold is the time of the hold before the first bucket.
	Hold time.Duration `json:"holdNanoseconds"`
	// Publish is the time in which the node's state is published.
	Publish time.Duration `json:"publishNanoseconds"`
	// Schedule is the pods' time, ascending by priority.
	Schedule Schedule `json:"schedule"`
	// Reserves has, for each bucket of Schedule, the time of its other steps. It is
	// zero for a bucket of 0 s.
	Reserves []Reserve `json:"reserves"`
	// Floor is the 2 s in which containers stop whose grace period is used up.
	Floor time.Duration `json:"floorNanoseconds"`
	// Margin is how long before the end of the host's delay the drain stops waiting.
	Margin time.Duration `json:"marginNanoseconds"`
}

// Reserve is the time that a bucket has for its steps other than the kills.
type Reserve struct {
	// Readiness is for the marks that the pods are not ready, before the kills.
	Readiness time.Duration `json:"readinessNanoseconds"`
	// Unmount is for the unmounts of the pods' volumes, after the kills.
	Unmount time.Duration `json:"unmountNanoseconds"`
	// Statuses is for the acknowledgements of the final statuses, after the unmounts.
	Statuses time.Duration `json:"statusesNanoseconds"`
}

// total returns the sum of the reserve. It saturates at the longest duration.
func (r Reserve) total() time.Duration { return windows.Sum(r.Readiness, r.Unmount, r.Statuses) }

// within returns the reserve shortened to a total, each part in proportion.
func (r Reserve) within(total time.Duration) Reserve {
	readiness := proportion(r.Readiness, total, r.total())
	unmount := min(proportion(r.Unmount, total, r.total()), total-readiness)
	return Reserve{Readiness: readiness, Unmount: unmount, Statuses: min(r.Statuses, total-readiness-unmount)}
}

// NewBudget returns the budget that a drain by a schedule, ascending by priority, needs.
// Its Total is the delay to request from the host, or less ([Options.Cap]). The Limit of
// the options is not applied; [Budget.Fit] does that.
func NewBudget(s Schedule, opts Options) Budget {
	b := Budget{
		Prepare:  orDefault(opts.PrepareTimeout, 2*time.Second, opts.Hooks.Prepare),
		Hold:     orDefault(opts.HoldTimeout, 10*time.Second, opts.Hooks.Hold),
		Publish:  orDefault(opts.PublishTimeout, 2*time.Second, opts.Hooks.Publish),
		Schedule: slices.Clone(s),
		Reserves: make([]Reserve, len(s)),
		Floor:    windows.Floor,
		Margin:   orDefault(opts.ReleaseMargin, 500*time.Millisecond, true),
	}
	each := opts.reserve()
	for i := range b.Schedule {
		b.Schedule[i].Seconds = max(b.Schedule[i].Seconds, 0)
		if b.Schedule[i].Seconds > 0 {
			b.Reserves[i] = each
		}
	}
	return b
}

// Total returns the sum of all parts. It saturates at the longest duration.
func (b Budget) Total() time.Duration {
	return windows.Sum(b.Prepare, b.Hold, b.Publish, b.Schedule.Total(), b.reserves(), b.Floor, b.Margin)
}

// Overhead returns the time of publishing and of all reserves: what gives way before the
// pods' time and after all else. It saturates at the longest duration.
func (b Budget) Overhead() time.Duration { return windows.Sum(b.Publish, b.reserves()) }

// reserves returns the sum of all reserves.
func (b Budget) reserves() (sum time.Duration) {
	for _, reserve := range b.Reserves {
		sum = windows.Sum(sum, reserve.total())
	}
	return sum
}

// buckets returns the times of the buckets.
func (b Budget) buckets() []windows.Bucket {
	all := make([]windows.Bucket, len(b.Schedule))
	for i, bucket := range b.Schedule {
		r := b.Reserves[i]
		all[i] = windows.Bucket{Readiness: r.Readiness, Pods: bucket.time(), Unmount: r.Unmount, Statuses: r.Statuses}
	}
	return all
}
