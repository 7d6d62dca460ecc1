// Package timetable puts the times of a drain on the clock: the budget and the windows of package
// plan, counted from the event of the drain. The drain follows it, and the record of a shutdown keeps
// it for the next agent.
//
// All of it is pure: it reads no clock, and a [Table] may be used concurrently. Every
// request has a result; only [Stored.Check] returns an error, for what a file may contain.
package timetable

import (
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Request is what a timetable is made for.
type Request struct {
	// Schedule is the schedule as configured, ascending by priority.
	Schedule plan.Schedule
	// Options are those of the manager, with its Steps.
	Options plan.Options
	// Received is when the event of this drain was received.
	Received time.Time
	// HostEnd is when the host shuts down. Zero: no host waits.
	HostEnd time.Time
	// Occupied says which buckets have pods. Nil: no complete list of pods is known.
	Occupied []bool
	// Prepared, Held and Published say that this shutdown has been through these steps,
	// which get no time then.
	Prepared, Held, Published bool

	// Before is the timetable that this one overtakes, because the host leaves less time; nil:
	// there is none. No end of Before moves to a later time, and its buckets count.
	Before *Table
	// Done is the number of buckets, from the lowest, that the drain of Before has finished.
	Done int
}

// limit returns how long the host waits, counted from the event; the longest duration if it
// has no limit.
func (r Request) limit() time.Duration {
	limit := time.Duration(math.MaxInt64)
	if !r.HostEnd.IsZero() {
		limit = max(r.HostEnd.Sub(r.Received), 0)
	}
	return r.Options.Cap(limit)
}

// options returns the options without the steps that have been.
func (r Request) options() plan.Options {
	opts := r.Options
	opts.Steps.Prepare = opts.Steps.Prepare && !r.Prepared
	opts.Steps.Hold = opts.Steps.Hold && !r.Held
	opts.Steps.Publish = opts.Steps.Publish && !r.Published
	return opts
}

// Table is the timetable of one drain. Make one with [New] or [Resume].
type Table struct {
	received time.Time
	budget   plan.Budget // as fitted
	opts     plan.Options
}

// New computes the timetable of a drain.
func New(r Request) Table {
	t := Table{received: r.Received, opts: r.options()}
	if r.Before == nil {
		t.budget = plan.NewBudget(r.Schedule, t.opts).Fit(r.limit(), r.Occupied)
	} else {
		t.budget = r.overtake(*r.Before)
	}
	return t
}

// overtake returns the budget of a drain that overtakes another one. What was fitted for that one and is
// still to come is fitted again, so that a host that leaves as much as before changes nothing.
func (r Request) overtake(before Table) plan.Budget {
	passed := r.Received.Sub(before.received)
	rest := before.budget
	rest.Buckets = slices.Clone(rest.Buckets)
	if r.Prepared {
		rest.Prepare = 0
	}
	if r.Held {
		rest.Hold = 0
	}
	if r.Published {
		rest.Publish = 0
	}
	for i := range min(r.Done, len(rest.Buckets)) {
		done := &rest.Buckets[i]
		done.Readiness, done.Pods, done.Unmount, done.Statuses = 0, 0, 0, 0
	}
	limit := min(r.limit(), max(before.budget.End-passed, 0))
	fitted := rest.Fit(limit, r.Occupied)
	spare := limit - fitted.End // what is done has left it, and the ends count back from that of the host
	earlier := func(end *time.Duration, before time.Duration) { *end = min(*end+spare, max(before-passed, 0)) }
	earlier(&fitted.WaitEnd, before.budget.WaitEnd)
	earlier(&fitted.End, before.budget.End)
	for i := range fitted.Buckets {
		earlier(&fitted.Buckets[i].End, before.budget.Buckets[i].End)
	}
	keepBetweenEnds(&fitted, rest.Buckets, r.Done)
	return fitted
}

// keepBetweenEnds gives each bucket what lies between its end and the one before, at most the pods' time that
// it had. Where that is more than is left, the first buckets that are not done are under way, and what
// has passed is no longer theirs.
func keepBetweenEnds(b *plan.Budget, had []plan.BucketBudget, done int) {
	for i := done + 1; i < len(b.Buckets); i++ {
		of := &b.Buckets[i]
		between := of.End - b.Buckets[i-1].End - of.Readiness - of.Unmount - of.Statuses
		of.Pods = min(had[i].Pods, max(of.Pods, between))
	}
	parts := make([]*time.Duration, 0, 4*len(b.Buckets)+3)
	for i := range b.Buckets {
		of := &b.Buckets[i]
		parts = append(parts, &of.Readiness, &of.Pods, &of.Unmount, &of.Statuses)
	}
	over := max(b.Total()-b.End, 0)
	for _, part := range append(parts, &b.Publish, &b.Hold, &b.Prepare) {
		cut := min(*part, over)
		*part, over = *part-cut, over-cut
	}
}

// End returns WaitEnd and Unlock of the [Table] of a request. They do not depend on Occupied.
func End(r Request) (waitEnd, unlock time.Time) {
	t := New(r)
	return t.WaitEnd(), t.Unlock()
}

// At converts a time that counts from the event.
func (t *Table) At(d time.Duration) time.Time { return t.received.Add(d) }

// Budget returns the budget of the drain as fitted. It must not be written to.
func (t *Table) Budget() plan.Budget { return t.budget }

// Schedule returns the schedule of the drain.
func (t *Table) Schedule() plan.Schedule {
	s := make(plan.Schedule, len(t.budget.Buckets))
	for i, b := range t.budget.Buckets {
		s[i] = plan.Bucket{Priority: b.Priority, Seconds: b.Seconds}
	}
	return s
}

// HoldEnd returns when the hold ends at the latest.
func (t *Table) HoldEnd() time.Time {
	return t.At(min(t.budget.Prepare+t.budget.Hold, t.budget.WaitEnd))
}

// PublishEnd returns when the wait for the node's state to be published ends at the latest.
// It takes no longer than Budget().Publish, also if it begins earlier.
func (t *Table) PublishEnd() time.Time {
	return t.At(min(t.budget.Prepare+t.budget.Hold+t.budget.Publish, t.budget.WaitEnd))
}

// WaitEnd returns when the drain stops waiting for pods, hooks and statuses.
func (t *Table) WaitEnd() time.Time { return t.At(t.budget.WaitEnd) }

// Unlock returns when the inhibitor lock is released at the latest: half-way between WaitEnd and the end of
// the drain, so that the report can be stored in between.
func (t *Table) Unlock() time.Time {
	return t.At(t.budget.WaitEnd + (t.budget.End-t.budget.WaitEnd)/2)
}

// Plan plans what the drain does to pods, on the assumption that each pod uses all of its
// time.
func (t *Table) Plan(pods []*v1.Pod) plan.Plan { return t.budget.Plan(pods, t.opts) }

// Window says when the steps of one bucket end at the latest: a [plan.Window] on the clock.
type Window struct {
	Ready, KillsEnd, UnmountsEnd, End time.Time

	received time.Time
	window   plan.Window
}

// Window returns the window of bucket i if it begins now.
func (t *Table) Window(i int, now time.Time) Window {
	w := t.budget.Window(i, now.Sub(t.received), t.opts)
	return Window{
		Ready: t.At(w.Ready), KillsEnd: t.At(w.KillsEnd), UnmountsEnd: t.At(w.UnmountsEnd), End: t.At(w.End),
		received: t.received, window: w,
	}
}

// Seconds returns the grace period override with which a pod of the bucket is killed at a time.
func (w Window) Seconds(pod *v1.Pod, at time.Time) int64 {
	return w.window.Seconds(pod, at.Sub(w.received))
}
