package plan

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// timerLag is how late a bucket may start without losing a second of its grace,
// which is counted in whole ones: timers and the reading of the pods take a
// moment, and a pod with 20 s would get 19.
const timerLag = 100 * time.Millisecond

// Window is the time of one bucket, as [Timetable.Window] gives it when the bucket
// starts. Its methods take the moment at which a pod is killed, because the readiness
// marks before it need not take all of their time.
type Window struct {
	// Ready is until when readiness marks are waited for, before the kills.
	Ready time.Time
	// End is when the bucket is done at the latest, its final statuses included.
	End time.Time

	own      time.Duration // the bucket's pods have, by the schedule
	left     time.Duration // and earlier buckets have left them
	gone     time.Time     // when they have to be gone
	endless  bool          // the sum of the buckets has saturated: gone does not count
	reserve  Reserve
	release  time.Time
	rollOver bool
}

// Window is the time of bucket i of the schedule if it starts now. left is what
// earlier buckets left of their pods' time, 0 or more, as [Window.Left] and
// [Timetable.Skip] give it. Where that is not known, the longest duration stands for
// all that there can be. Without roll-over it does not count.
//
// A bucket of 0 s has no time, whatever is left: its pods are signalled with 0 and
// not waited for.
func (t *Timetable) Window(i int, now time.Time, left time.Duration) Window {
	w := Window{
		own:      t.budget.Schedule[i].time(),
		reserve:  t.budget.reserve(i),
		release:  t.release,
		endless:  t.ends[i] == math.MaxInt64,
		rollOver: t.rollOver,
	}
	end := t.first.Add(t.ends[i])
	w.gone = end.Add(-w.reserve.Unmount).Add(-w.reserve.Statuses)
	if w.own > 0 && t.rollOver {
		w.left = left
	}
	if w.own == 0 || !t.rollOver {
		end = earlier(end, now.Add(t.budget.bucket(i)))
	}
	w.Ready = earlier(w.marked(now), t.release)
	w.End = earlier(end, t.release)
	return w
}

// marked is until when marks may take that begin now: their reserve, but never the
// pods' own time, where the bucket starts late.
func (w Window) marked(now time.Time) time.Time {
	ready := now.Add(w.reserve.Readiness)
	if w.endless {
		return ready
	}
	return later(now, earlier(ready, w.gone.Add(-w.own)))
}

// Grace is how long pods have that are killed at a time: what the schedule gives
// them and what earlier buckets have left, up to when they have to be gone.
func (w Window) Grace(at time.Time) time.Duration {
	if w.own == 0 {
		return 0
	}
	grace := saturatingAdd(w.own, w.left)
	if w.endless {
		return grace
	}
	return max(min(grace, w.gone.Sub(at)), 0)
}

// Seconds is the grace period override, 0 or more, that a pod of the bucket is killed
// with at a time: its own grace period if that is not longer than what there is
// ([graceperiod.ForNodeShutdown]). A pod that does not say how long it wants is not
// given what earlier buckets have left.
func (w Window) Seconds(pod *v1.Pod, at time.Time) int64 {
	grace := w.Grace(at)
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		grace = min(grace, w.own)
	}
	return max(graceperiod.ForNodeShutdown(pod, int64(saturatingAdd(grace, timerLag)/time.Second)), 0)
}

// Killed is until when pods are waited for that are killed at a time.
func (w Window) Killed(at time.Time) time.Time { return earlier(at.Add(w.Grace(at)), w.release) }

// Unmounted is until when the volumes of pods that are killed at a time are waited
// for: what the pods leave of their time, which a kubelet uses for it too, and the
// reserve.
func (w Window) Unmounted(at time.Time) time.Time {
	return earlier(at.Add(saturatingAdd(w.Grace(at), w.reserve.Unmount)), w.End.Add(-w.reserve.Statuses))
}

// Left is what a bucket leaves of its pods' time to later ones when its pods were
// killed at a time and the last of them has ended so long after it.
func (w Window) Left(at time.Time, used time.Duration) time.Duration {
	if !w.rollOver {
		return 0
	}
	return max(w.Grace(at)-used, 0)
}
