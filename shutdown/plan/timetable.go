package plan

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// timerLag is how late a bucket may start without losing a second of its grace,
// which is counted in whole ones: timers and the reading of the pods take a
// moment, and a pod with 20 s would get 19.
const timerLag = 100 * time.Millisecond

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
	budget   Budget // as fitted
	rollOver bool
	first    time.Time       // when the first bucket starts at the latest
	ends     []time.Duration // of each bucket at the latest, since first
	release  time.Time
	late     time.Time // before which the first bucket does not start; zero: at once
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
	t.first, t.release = a.Received.Add(saturatingAdd(budget.Hold, budget.Publish)), a.Received.Add(lasts)
	if a.Late && limited {
		t.late = t.release.Add(-containerFloor).Add(-budget.buckets())
		t.first = later(t.first, t.late)
	}
	return t
}

// ResumeTimetable is the timetable of a drain that another process has begun: its
// fitted schedule, when its first bucket was to start at the latest (First), and when
// the host is let go (Release).
func ResumeTimetable(fitted Schedule, opts Options, first, release time.Time) Timetable {
	budget := NewBudget(fitted, opts)
	budget.Hold, budget.Publish, budget.Margin = 0, 0, 0
	budget.shrink(max(release.Sub(first), 0), 0)
	t := newTimetable(budget, opts)
	t.first, t.release = first, release
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

// Release is when the host is let go at the latest. Nothing is waited for after it.
func (t *Timetable) Release() time.Time { return t.release }

// Window is the time of one bucket, as it was worked out when the bucket started.
// No time in it is after the release.
type Window struct {
	// Ready is until when readiness marks are waited for, before the kills.
	Ready time.Time
	// Grace is how long the bucket's pods have from their kill on, with what earlier
	// buckets left of their own time; Own is without it.
	Grace, Own time.Duration
	// End is when the bucket is done at the latest, its final statuses included.
	End time.Time

	unmount, statuses time.Duration
	release           time.Time
	rollOver          bool
}

// Window is the time of bucket i if it starts now. left is what earlier buckets left
// of their pods' time, 0 or more, as [Window.Left] and [Timetable.Skip] give it; the
// longest duration stands for all that there can be, where it is not known. Without
// roll-over it does not count.
//
// A bucket of 0 s has no time, whatever is left: its pods are signalled with 0 and
// not waited for.
func (t *Timetable) Window(i int, now time.Time, left time.Duration) Window {
	own, reserve := t.budget.Schedule[i].time(), t.budget.Reserves[i]
	w := Window{Own: own, unmount: reserve.Unmount, statuses: reserve.Statuses, release: t.release, rollOver: t.rollOver}
	end := t.first.Add(t.ends[i])
	if own > 0 {
		w.Grace = own
		if t.rollOver {
			w.Grace = saturatingAdd(own, left)
		}
		w.Grace = max(min(w.Grace, end.Add(-reserve.total()).Sub(now)), 0)
	}
	if !t.rollOver || own == 0 {
		end = earlier(end, now.Add(t.budget.bucket(i)))
	}
	w.Ready = earlier(now.Add(reserve.Readiness), t.release)
	w.End = earlier(end, t.release)
	return w
}

// Killed is until when pods are waited for that are killed at a time.
func (w Window) Killed(at time.Time) time.Time { return earlier(at.Add(w.Grace), w.release) }

// Unmounted is until when the volumes of pods that are killed at a time are waited
// for: what the pods leave of their time, which a kubelet uses for it too, and the
// reserve.
func (w Window) Unmounted(at time.Time) time.Time {
	return earlier(at.Add(saturatingAdd(w.Grace, w.unmount)), w.End.Add(-w.statuses))
}

// Left is what a bucket leaves of its pods' time to later ones when its last pod
// has ended so long after the kill.
func (w Window) Left(used time.Duration) time.Duration {
	if !w.rollOver {
		return 0
	}
	return max(w.Grace-used, 0)
}

// Skip is what is left to later buckets when bucket i is skipped, having no pods.
func (t *Timetable) Skip(i int, left time.Duration) time.Duration {
	if !t.rollOver {
		return 0
	}
	return saturatingAdd(left, t.budget.Schedule[i].time())
}

// Seconds is the grace period override, 0 or more, that a pod of the bucket is
// killed with: its own grace period if that is not longer than what the bucket has
// ([graceperiod.ForNodeShutdown]). A pod that does not say how long it wants is not
// given what other buckets have left.
func (w Window) Seconds(pod *v1.Pod) int64 {
	grace := w.Grace
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		grace = min(grace, w.Own)
	}
	if grace > 0 {
		grace = saturatingAdd(grace, timerLag)
	}
	return max(graceperiod.ForNodeShutdown(pod, int64(grace/time.Second)), 0)
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
