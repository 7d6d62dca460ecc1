// Package timetable converts the budget and the windows of package plan, which count from the announcement of a
// shutdown, to points in time. A drain follows its timetable, and the state log keeps it for the next agent.
//
// The package reads no clock. A [Table] may be used concurrently. [New] never fails; [Table.Check]
// validates what was read from a file.
package timetable

import (
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Request is the input of [New].
type Request struct {
	// Schedule is the configured schedule, ascending by priority.
	Schedule plan.Schedule
	// Options are the manager's, with Steps set.
	Options plan.Options
	// Received is when the event of the drain was received.
	Received time.Time
	// HostEnd is when the host shuts down. Zero: no limit.
	HostEnd time.Time
	// Occupied says for each bucket whether it has pods. Nil: not known, and all buckets are treated alike.
	Occupied []bool
	// Prepared, Held and Published say that the steps Prepare, Hold and Publish are over and get no time.
	Prepared, Held, Published bool

	// Old is the timetable to shorten, because the host leaves less time. Its buckets are used instead of
	// Schedule, and no time moves later. Nil: a new timetable is made from Schedule.
	Old *Table
	// DoneBuckets is the number of buckets of Old that are over.
	DoneBuckets int
}

// limit returns how long the drain may take, counted from its event: as long as the host waits, but at most
// Options.Limit. If neither is set, it is the longest duration.
func (r Request) limit() time.Duration {
	limit := time.Duration(math.MaxInt64)
	if !r.HostEnd.IsZero() {
		limit = max(r.HostEnd.Sub(r.Received), 0)
	}
	return r.Options.Cap(limit)
}

// options returns the options without the steps that are over, so that the budget has no time for them.
func (r Request) options() plan.Options {
	opts := r.Options
	opts.Steps.Prepare = opts.Steps.Prepare && !r.Prepared
	opts.Steps.Hold = opts.Steps.Hold && !r.Held
	opts.Steps.Publish = opts.Steps.Publish && !r.Published
	return opts
}

// Table is the timetable of one drain. Make one with [New]. Its JSON is what the state log has of it, for the next agent. It
// must not be modified.
type Table struct {
	// Received is when the event of the drain was received.
	Received time.Time `json:"received"`
	// Budget is the fitted budget. Its ends count from Received.
	Budget plan.Budget `json:"budget"`

	opts plan.Options // not stored: the next agent has its own
}

// New returns the timetable of a drain: a new one for the schedule or, if r.Old is set, r.Old shortened.
func New(r Request) *Table {
	t := &Table{Received: r.Received, opts: r.options()}
	if r.Old == nil {
		t.Budget = plan.NewBudget(r.Schedule, t.opts).Fit(r.limit(), r.Occupied)
	} else {
		t.Budget = r.shorten(r.Old)
	}
	return t
}

// WithOptions returns a copy of a table that was read from the state log, with the options of this agent, which the log does
// not have. The deadlines stay.
func (t *Table) WithOptions(opts plan.Options) *Table {
	return &Table{Received: t.Received, Budget: t.Budget, opts: opts}
}

// remainingParts returns a copy of a budget in which the parts that are over have no time.
func (r Request) remainingParts(b plan.Budget) plan.Budget {
	b.Buckets = slices.Clone(b.Buckets)
	if r.Prepared {
		b.Prepare = 0
	}
	if r.Held {
		b.Hold = 0
	}
	if r.Published {
		b.Publish = 0
	}
	for i := range min(r.DoneBuckets, len(b.Buckets)) {
		bucket := &b.Buckets[i]
		bucket.Readiness, bucket.Pods, bucket.Unmount, bucket.Statuses = 0, 0, 0, 0
	}
	return b
}

// shorten returns the budget of old, fitted into the time that is left at r.Received. The result counts from r.Received. It is
// made from those parts of old.Budget that are not over, and not from the schedule: if the deadline has not changed, no part
// changes.
func (r Request) shorten(old *Table) plan.Budget {
	passed := r.Received.Sub(old.Received)
	remaining := r.remainingParts(old.Budget)
	limit := min(r.limit(), max(old.Budget.End-passed, 0))
	fitted := remaining.Fit(limit, r.Occupied)
	// Steps that are over may have left time unused (spare): the remaining parts then end before limit, which is the host's end.
	// All ends move later by spare, so that the last part ends at limit again. But no end becomes later than it is in old.
	spare := limit - fitted.End
	moved := func(end, oldEnd time.Duration) time.Duration { return min(end+spare, max(oldEnd-passed, 0)) }
	fitted.WaitEnd = moved(fitted.WaitEnd, old.Budget.WaitEnd)
	fitted.End = moved(fitted.End, old.Budget.End)
	for i := range fitted.Buckets {
		bucket := &fitted.Buckets[i]
		bucket.End = moved(bucket.End, old.Budget.Buckets[i].End)
	}
	fillGaps(&fitted, remaining.Buckets, r.DoneBuckets)
	cutExcess(&fitted)
	return fitted
}

// fillGaps lengthens the pods' times after shorten has moved the ends of the buckets. The first doneBuckets buckets are over, and
// the next one is in progress. In each bucket after that, the gap is the time from the end of the previous bucket to its own
// end, less its other steps. Its pods get the whole gap if that is more than Fit has left them, but never more than they had
// before Fit (unfitted).
func fillGaps(b *plan.Budget, unfitted []plan.BucketBudget, doneBuckets int) {
	for i := doneBuckets + 1; i < len(b.Buckets); i++ {
		bucket := &b.Buckets[i]
		gap := bucket.End - b.Buckets[i-1].End - bucket.Readiness - bucket.Unmount - bucket.Statuses
		bucket.Pods = min(unfitted[i].Pods, max(bucket.Pods, gap))
	}
}

// cutExcess shortens the parts of a budget until they add up to at most b.End, the time that is left. They add up to more if some
// of the time of the bucket in progress has passed already. That bucket is shortened first: it is the first bucket whose parts are
// not 0, because those of earlier buckets are.
func cutExcess(b *plan.Budget) {
	parts := make([]*time.Duration, 0, 4*len(b.Buckets)+3)
	for i := range b.Buckets {
		bucket := &b.Buckets[i]
		parts = append(parts, &bucket.Readiness, &bucket.Pods, &bucket.Unmount, &bucket.Statuses)
	}
	excess := max(b.Total()-b.End, 0)
	for _, part := range append(parts, &b.Publish, &b.Hold, &b.Prepare) {
		cut := min(*part, excess)
		*part, excess = *part-cut, excess-cut
	}
}

// At returns the time d after the event of the drain.
func (t *Table) At(d time.Duration) time.Time { return t.Received.Add(d) }

// End returns the time at which the timetable ends: the host shuts down by then.
func (t *Table) End() time.Time { return t.At(t.Budget.End) }

// Schedule returns the schedule of the drain.
func (t *Table) Schedule() plan.Schedule {
	s := make(plan.Schedule, len(t.Budget.Buckets))
	for i, b := range t.Budget.Buckets {
		s[i] = plan.Bucket{Priority: b.Priority, Seconds: b.Seconds}
	}
	return s
}

// HoldEnd returns the deadline of Options.Hold, the call that delays the first kill.
func (t *Table) HoldEnd() time.Time {
	return t.At(min(t.Budget.Prepare+t.Budget.Hold, t.Budget.WaitEnd))
}

// PublishEnd returns the latest deadline for publishing the node's state. Publishing takes at most Budget.Publish, so if it
// begins early, it must also end before this deadline.
func (t *Table) PublishEnd() time.Time {
	return t.At(min(t.Budget.Prepare+t.Budget.Hold+t.Budget.Publish, t.Budget.WaitEnd))
}

// WaitEnd returns the time at which the drain stops waiting for pods, hooks and statuses.
func (t *Table) WaitEnd() time.Time { return t.At(t.Budget.WaitEnd) }

// ReleaseBy returns the deadline for releasing the inhibitor lock: half-way between WaitEnd and the end,
// so that the report can be stored in between.
func (t *Table) ReleaseBy() time.Time {
	return t.At(t.Budget.WaitEnd + (t.Budget.End-t.Budget.WaitEnd)/2)
}

// Plan plans the drain of pods, assuming that each pod uses all its time.
func (t *Table) Plan(pods []*v1.Pod) plan.Plan { return t.Budget.Plan(pods, t.opts) }

// Window has the deadlines of the steps of one bucket: a [plan.Window] as points in time.
type Window struct {
	Ready       time.Time // the wait until the pods are NotReady ends, and they are killed
	KillsEnd    time.Time // the wait for the pods ends
	UnmountsEnd time.Time // the wait for the pods' volumes ends
	End         time.Time // the bucket ends, including its final statuses

	received time.Time   // of the Table
	window   plan.Window // its times count from received
}

// Window returns the deadlines of bucket i if the bucket begins now. If it begins early, its pods get more time, unless
// Options.NoRollOver is set.
func (t *Table) Window(i int, now time.Time) Window {
	w := t.Budget.Window(i, now.Sub(t.Received), t.opts)
	return Window{
		Ready: t.At(w.Ready), KillsEnd: t.At(w.KillsEnd), UnmountsEnd: t.At(w.UnmountsEnd), End: t.At(w.End),
		received: t.Received, window: w,
	}
}

// Seconds returns the grace period of a pod of this bucket, in seconds, if its kill begins at killAt.
func (w Window) Seconds(pod *v1.Pod, killAt time.Time) int64 {
	return w.window.Seconds(pod, killAt.Sub(w.received))
}
