package plan

import (
	"time"
)

// Announcement is what a drain knows of its shutdown when it begins.
type Announcement struct {
	// Received is when the shutdown was announced: T0.
	Received time.Time
	// HostEnd is when the host goes on by itself. Zero: no host waits.
	HostEnd time.Time
	// Late has the buckets start as late as they fit before the end of the host's
	// limit. It means nothing where no host waits.
	Late bool
}

// Timetable says when each bucket of one drain starts and ends at the latest, and
// when the host is let go. Make one with [NewTimetable] or [ResumeTimetable].
type Timetable struct {
	announced time.Time
	wanted    Budget // as it would be if every host waited
	budget    Budget // as fitted
	rollOver  bool
	first     time.Time       // when the first bucket starts at the latest
	ends      []time.Duration // of each bucket at the latest, since first
	release   time.Time
	late      time.Time // before which the first bucket does not start; zero: at once
}

// NewTimetable works out a drain by this schedule, ascending by priority. Where the
// host's end, or the limit of the options, is nearer than all that the drain needs,
// [Budget.Fit] says what gives way; where it is farther, the host is not held for
// longer than the drain needs, unless it is to begin late.
func NewTimetable(s Schedule, opts Options, a Announcement) Timetable {
	budget := NewBudget(s, opts)
	lasts := budget.Total()
	end, limited := opts.HostEnd(a)
	if limited {
		limit := max(end.Sub(a.Received), 0)
		budget = budget.Fit(limit)
		if whole := limit - budget.Margin; whole < lasts || a.Late {
			lasts = whole
		}
	}
	t := newTimetable(budget, opts)
	t.announced, t.wanted = a.Received, NewBudget(s, opts)
	t.first, t.release = a.Received.Add(saturatingAdd(budget.Hold, budget.Publish)), a.Received.Add(lasts)
	if a.Late && limited {
		t.late = t.release.Add(-containerFloor).Add(-budget.buckets())
		t.first = later(t.first, t.late)
	}
	return t
}

// Resumed is what is known of a drain that another process has begun.
type Resumed struct {
	// Schedule is the schedule as fitted.
	Schedule Schedule
	// First and Release are those of the other process's timetable.
	First, Release time.Time
	// Late tells whether the first bucket was to start no earlier than First.
	Late bool
}

// ResumeTimetable is the timetable of a drain that another process has begun: it has
// the ends that the other one had, if the options are the same.
func ResumeTimetable(r Resumed, opts Options) Timetable {
	budget := NewBudget(r.Schedule, opts)
	budget.Hold, budget.Publish, budget.Margin = 0, 0, 0
	budget.shrink(max(r.Release.Sub(r.First), 0), 0)
	budget.Margin = span(opts.ReleaseMargin, DefaultReleaseMargin, true)
	t := newTimetable(budget, opts)
	t.announced, t.wanted = r.First, budget
	t.first, t.release = r.First, r.Release
	if r.Late {
		t.late = r.First
	}
	return t
}

func newTimetable(budget Budget, opts Options) Timetable {
	t := Timetable{budget: budget, rollOver: !opts.NoRollOver, ends: make([]time.Duration, len(budget.Schedule))}
	var end time.Duration
	for i := range t.ends {
		end = saturatingAdd(end, budget.bucket(i))
		t.ends[i] = end
	}
	return t
}

// HostEnd is when the host goes on: at the end that was announced, or when the limit
// of the options is over if that is earlier; false: it has no end.
func (o Options) HostEnd(a Announcement) (end time.Time, known bool) {
	end, known = a.HostEnd, !a.HostEnd.IsZero()
	if o.Limit == 0 {
		return end, known
	}
	limited := a.Received.Add(max(o.Limit, 0))
	if known {
		limited = earlier(end, limited)
	}
	return limited, true
}

// Budget is the time of the drain as fitted into the host's limit.
func (t *Timetable) Budget() Budget { return t.budget }

// Schedule is the pods' time of each bucket as fitted; it must not be written to.
func (t *Timetable) Schedule() Schedule { return t.budget.Schedule }

// First is when the first bucket starts at the latest, if it has pods.
func (t *Timetable) First() time.Time { return t.first }

// NotBefore is when the first bucket starts at the earliest; zero: at once.
func (t *Timetable) NotBefore() time.Time { return t.late }

// Release is when the waiting for pods, hooks and statuses ends at the latest (H).
func (t *Timetable) Release() time.Time { return t.release }

// Unlock is when the lock is closed at the latest: half of the margin after the
// release, in which the end is told and stored.
func (t *Timetable) Unlock() time.Time { return t.release.Add(t.budget.Margin / 2) }

// Skip is what is left to later buckets when bucket i is skipped, having no pods.
func (t *Timetable) Skip(i int, left time.Duration) time.Duration {
	if !t.rollOver {
		return 0
	}
	return saturatingAdd(left, t.budget.Schedule[i].time())
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
