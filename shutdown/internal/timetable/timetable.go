// Package timetable computes when each step of a drain starts and ends at the latest. The
// drain follows it, and the record of a shutdown keeps it for the next agent. It is built on
// package plan, so that a drain does what was planned.
//
// All of it is pure: it reads no clock, and a [Table] may be used concurrently. Every
// request has a result; only [Stored.Check] returns an error, for what a file may contain.
package timetable

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown/internal/windows"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Request is what a timetable is made for.
type Request struct {
	// Schedule is the schedule as configured, ascending by priority.
	Schedule plan.Schedule
	// Options are those of the manager, with its Hooks.
	Options plan.Options
	// Received is when the event of this drain was received.
	Received time.Time
	// HostEnd is when the host goes on. Zero: no host waits.
	HostEnd time.Time
	// Until is when the drain stops all waiting at the latest; zero: the rest of the request
	// says it.
	Until time.Time
	// Late delays the buckets: they start as late as they fit before the host's end. It
	// has no effect if no host waits.
	Late bool
	// Needs are the seconds that the pods of each bucket need, from [plan.Schedule.Needs]. Nil: no
	// complete list of pods is known, and the schedule's seconds count.
	Needs []int64
	// Done is the number of buckets, from the lowest, that an earlier drain of the same
	// shutdown has finished. They need nothing and have no reserves.
	Done int
	// Prepared, Held and Published say that this shutdown has been through these steps,
	// which get no time then.
	Prepared, Held, Published bool
}

// End returns H and Unlock of the [Table] of a request, which do not depend on Needs and Done.
func End(r Request) (h, unlock time.Time) {
	h = r.Received.Add(r.end(plan.NewBudget(r.Schedule, r.options())))
	return h, h.Add(r.margin() / 2)
}

// margin returns the margin of the options, at most a tenth of the limit.
func (r Request) margin() time.Duration {
	return min(plan.NewBudget(nil, r.Options).Margin, r.limit()/10)
}

// end returns when the drain stops all waiting, counted from the event. asked is what the
// host would have been asked for.
func (r Request) end(asked plan.Budget) time.Duration {
	end := r.limit() - r.margin()
	if !r.Until.IsZero() {
		end = min(end, max(r.Until.Sub(r.Received), 0))
	}
	if r.isLate() {
		return end
	}
	return min(end, asked.Total())
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
	opts.Hooks.Prepare = opts.Hooks.Prepare && !r.Prepared
	opts.Hooks.Hold = opts.Hooks.Hold && !r.Held
	opts.Hooks.Publish = opts.Hooks.Publish && !r.Published
	return opts
}

// isLate reports whether the drain starts as late as it can.
func (r Request) isLate() bool { return r.Late && !r.HostEnd.IsZero() }

// Table is the timetable of one drain. Make one with [New] or [Resume].
type Table struct {
	windows.Windows
	received time.Time
	wanted   plan.Budget // that the drain needs
	budget   plan.Budget // as fitted
	late     bool        // the first bucket does not start before First
}

// Window is the time of one bucket, from Window of a [Table].
type Window = windows.Window

// New computes the timetable of a drain. If the host stops waiting before the time that the
// drain needs, [plan.Budget.Fit] shortens it. If it leaves more, the drain still ends when
// it needs no more, unless it is late.
func New(r Request) Table {
	wanted := plan.NewBudget(r.Schedule, r.options())
	h, done := r.end(wanted), min(max(r.Done, 0), len(r.Schedule))
	clear(wanted.Reserves[:done])
	needs := append(make([]int64, done), r.Needs[min(done, len(r.Needs)):]...)
	t := Table{received: r.Received, wanted: wanted, budget: wanted.Fit(r.limit(), needs)}
	first := t.beforeBuckets()
	if r.isLate() {
		buckets := windows.Sum(t.budget.Schedule.Total(), t.budget.Overhead()) - t.budget.Publish
		latest := h - windows.Sum(buckets, windows.Floor)
		first, t.late = max(first, latest), latest > first
	}
	t.setWindows(first, h, r.Options)
	return t
}

// setWindows computes the windows of the fitted budget.
func (t *Table) setWindows(first, h time.Duration, opts plan.Options) {
	buckets := make([]windows.Bucket, len(t.budget.Schedule))
	for i, b := range t.budget.Schedule {
		r := t.budget.Reserves[i]
		buckets[i] = windows.Bucket{Readiness: r.Readiness, Pods: graceperiod.Duration(b.Seconds), Unmount: r.Unmount, Statuses: r.Statuses}
	}
	t.Windows = windows.New(buckets, t.received, first, h, !opts.NoRollOver)
}

// Budget returns the budget of the drain as fitted. It must not be written to.
func (t *Table) Budget() plan.Budget { return t.budget }

// Schedule returns the schedule of the drain as fitted. It must not be written to.
func (t *Table) Schedule() plan.Schedule { return t.budget.Schedule }

// HoldEnd returns when the hold ends at the latest.
func (t *Table) HoldEnd() time.Time { return t.At(windows.Sum(t.budget.Prepare, t.budget.Hold)) }

// PublishEnd returns when the wait for the node's state to be published ends at the latest.
// It takes no longer than Budget().Publish, also if it begins earlier.
func (t *Table) PublishEnd() time.Time { return t.At(t.beforeBuckets()) }

// beforeBuckets returns the time before the first bucket.
func (t *Table) beforeBuckets() time.Duration {
	return windows.Sum(t.budget.Prepare, t.budget.Hold, t.budget.Publish)
}

// NotBefore returns when the first bucket starts at the earliest; zero: at once.
func (t *Table) NotBefore() time.Time {
	if !t.late {
		return time.Time{}
	}
	return t.First()
}

// Unlock returns when the host's lock goes at the latest: half of the margin after H, so
// that the report can be stored in between.
func (t *Table) Unlock() time.Time { return t.H().Add(t.budget.Margin / 2) }

// Plan plans what the drain does to pods, on the assumption that each pod uses all of its
// time. The options must be those that the timetable was made with.
func (t *Table) Plan(pods []*v1.Pod, opts plan.Options) plan.Plan {
	return plan.Drain{
		Wanted: t.wanted, Fitted: t.budget, First: t.First().Sub(t.received), Release: t.H().Sub(t.received),
	}.Plan(pods, opts)
}
