package plan

import (
	"time"
)

// Announcement is the shutdown that a drain is for.
type Announcement struct {
	// Received is when the shutdown was announced.
	Received time.Time
	// HostEnd is when the host stops waiting. Zero: no host waits.
	HostEnd time.Time
	// Late delays the buckets: they start as late as they fit before the end of the
	// host's limit. It has no effect if no host waits.
	Late bool
}

// Timetable says when each bucket of one drain starts and ends at the latest, and when
// the drain ends. Make one with [NewTimetable] or [ResumeTimetable].
type Timetable struct {
	announced time.Time
	wanted    Budget // that the drain needs
	budget    Budget // as shortened to fit the host's limit
	rollOver  bool
	first     time.Time       // when the first bucket starts at the latest
	ends      []time.Duration // when each bucket ends at the latest, since first
	release   time.Time
	notBefore time.Time // when the first bucket starts at the earliest; zero: at once
}

// NewTimetable computes the timetable of a drain by a schedule, which is ascending by
// priority. If the host stops waiting, or the limit of the options ends, before the time
// that the drain needs, [Budget.Fit] shortens it. If they leave more time, the drain still
// ends when it needs no more, unless the announcement is Late.
func NewTimetable(s Schedule, opts Options, a Announcement) Timetable {
	budget := NewBudget(s, opts)
	duration := budget.Total()
	end, limited := opts.HostEnd(a)
	if limited {
		limit := max(end.Sub(a.Received), 0)
		budget = budget.Fit(limit)
		if usable := limit - budget.Margin; usable < duration || a.Late {
			duration = usable
		}
	}
	t := newTimetable(budget, opts)
	t.announced, t.wanted = a.Received, NewBudget(s, opts)
	t.first, t.release = a.Received.Add(saturatingAdd(budget.Hold, budget.Publish)), a.Received.Add(duration)
	if a.Late && limited {
		t.notBefore = t.release.Add(-containerFloor).Add(-budget.buckets())
		t.first = later(t.first, t.notBefore)
	}
	return t
}

// Resumed is the state of a drain that another process began.
type Resumed struct {
	// Schedule is the schedule of the other process's timetable.
	Schedule Schedule
	// First and Release are those of the other process's timetable.
	First, Release time.Time
	// Late says that the first bucket must not start before First.
	Late bool
}

// ResumeTimetable computes the timetable of a drain that another process began. Its
// buckets end when those of the other process would have, if the options are the same.
func ResumeTimetable(r Resumed, opts Options) Timetable {
	budget := NewBudget(r.Schedule, opts)
	budget.Hold, budget.Publish, budget.Margin = 0, 0, 0
	budget.shrink(max(r.Release.Sub(r.First), 0), 0)
	budget.Margin = orDefault(opts.ReleaseMargin, DefaultReleaseMargin, true)
	t := newTimetable(budget, opts)
	t.announced, t.wanted = r.First, budget
	t.first, t.release = r.First, r.Release
	if r.Late {
		t.notBefore = r.First
	}
	return t
}

// newTimetable returns a timetable in which only the budget and the ends of the buckets,
// counted from the start of the first one, are set.
func newTimetable(budget Budget, opts Options) Timetable {
	t := Timetable{budget: budget, rollOver: !opts.NoRollOver, ends: make([]time.Duration, len(budget.Schedule))}
	var end time.Duration
	for i := range t.ends {
		end = saturatingAdd(end, budget.bucket(i))
		t.ends[i] = end
	}
	return t
}

// HostEnd returns when the host stops waiting: at the end that was announced, or at the
// end of the limit in the options if that is earlier. It returns false if there is neither.
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

// Budget returns the budget of the drain, as shortened to fit the host's limit.
func (t *Timetable) Budget() Budget { return t.budget }

// Schedule returns the schedule of the drain, as shortened to fit the host's limit. It
// must not be written to.
func (t *Timetable) Schedule() Schedule { return t.budget.Schedule }

// First returns when the first bucket starts at the latest, if it has pods.
func (t *Timetable) First() time.Time { return t.first }

// NotBefore returns when the first bucket starts at the earliest; zero: at once.
func (t *Timetable) NotBefore() time.Time { return t.notBefore }

// Release returns when the drain stops waiting for pods, hooks and statuses at the latest.
func (t *Timetable) Release() time.Time { return t.release }

// Unlock returns when the lock is released at the latest: half of the margin after
// Release, so that the report can be stored in between.
func (t *Timetable) Unlock() time.Time { return t.release.Add(t.budget.Margin / 2) }

// Skip returns the time that rolls over to later buckets when bucket i has no pods and is
// skipped. rolledOver is the time that earlier buckets rolled over. Without roll-over the
// result is 0.
func (t *Timetable) Skip(i int, rolledOver time.Duration) time.Duration {
	if !t.rollOver {
		return 0
	}
	return saturatingAdd(rolledOver, t.budget.Schedule[i].time())
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
