package plan

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// timerLag is how late a bucket may start without loss of a second. Timers, and reading
// the list of pods, take a moment, after which a pod of 20 s would be granted 19 whole
// seconds.
const timerLag = 100 * time.Millisecond

// Window is the time of one bucket, which is known when the bucket starts. Make one with
// [Timetable.Window]. Its methods take the time at which the pods are killed, because the
// readiness marks before the kills may take less than their reserve.
type Window struct {
	// Ready is when the wait for readiness marks, before the kills, ends at the
	// latest.
	Ready time.Time
	// End is when the bucket ends at the latest, its final statuses included.
	End time.Time

	scheduled  time.Duration // the time of the bucket's pods in the schedule
	rolledOver time.Duration // the time that earlier buckets rolled over to them
	podsEnd    time.Time     // when the pods' time ends at the latest
	saturated  bool          // the sum of the buckets has saturated: podsEnd means nothing
	reserve    Reserve
	release    time.Time
	rollOver   bool
}

// Window returns the time of bucket i of the schedule if it starts now. rolledOver is the
// time that earlier buckets rolled over, 0 or more, from [Window.Left] and
// [Timetable.Skip]; it has no effect without roll-over. If it is not known, pass the
// longest duration: the planned end of the bucket limits it.
//
// A bucket of 0 s has no time, whatever rolledOver is: its pods are killed with a grace
// period of 0, and not waited for.
func (t *Timetable) Window(i int, now time.Time, rolledOver time.Duration) Window {
	w := Window{
		scheduled: t.budget.Schedule[i].time(),
		reserve:   t.budget.reserve(i),
		release:   t.release,
		saturated: t.ends[i] == math.MaxInt64,
		rollOver:  t.rollOver,
	}
	end := t.first.Add(t.ends[i])
	w.podsEnd = end.Add(-w.reserve.Unmount).Add(-w.reserve.Statuses)
	if w.scheduled > 0 && t.rollOver {
		w.rolledOver = rolledOver
	}
	if w.scheduled == 0 || !t.rollOver {
		end = earlier(end, now.Add(t.budget.bucket(i)))
	}
	w.Ready = earlier(w.marksEnd(now), t.release)
	w.End = earlier(end, t.release)
	return w
}

// marksEnd returns when the readiness marks end at the latest if they begin now: after
// their reserve, or earlier in a bucket that starts late, so that the pods keep the time
// that they have in the schedule.
func (w Window) marksEnd(now time.Time) time.Time {
	ready := now.Add(w.reserve.Readiness)
	if w.saturated {
		return ready
	}
	return later(now, earlier(ready, w.podsEnd.Add(-w.scheduled)))
}

// Grace returns how long the pods have if they are killed at a time: their time in the
// schedule and what earlier buckets rolled over, up to the planned end.
func (w Window) Grace(at time.Time) time.Duration {
	grace := saturatingAdd(w.scheduled, w.rolledOver)
	if w.saturated {
		return grace
	}
	return max(min(grace, w.podsEnd.Sub(at)), 0)
}

// Seconds returns the grace period override, 0 or more, with which a pod of the bucket is
// killed at a time: its own grace period, or the result of [Window.Grace] in whole
// seconds if that is shorter ([graceperiod.ForNodeShutdown]). A pod without a grace period
// does not get the time that earlier buckets rolled over.
func (w Window) Seconds(pod *v1.Pod, at time.Time) int64 {
	grace := w.Grace(at)
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		grace = min(grace, w.scheduled)
	}
	return max(graceperiod.ForNodeShutdown(pod, int64(saturatingAdd(grace, timerLag)/time.Second)), 0)
}

// KillsEnd returns when the wait for pods that are killed at a time ends at the latest.
func (w Window) KillsEnd(at time.Time) time.Time { return earlier(at.Add(w.Grace(at)), w.release) }

// UnmountsEnd returns when the wait for the volumes of pods that are killed at a time ends
// at the latest. Unmounts have the time that the pods do not use, as in the kubelet, and
// their reserve.
func (w Window) UnmountsEnd(at time.Time) time.Time {
	return earlier(at.Add(saturatingAdd(w.Grace(at), w.reserve.Unmount)), w.End.Add(-w.reserve.Statuses))
}

// Left returns the time that rolls over to later buckets if the pods of this bucket were
// killed at a time and took used to end. Without roll-over it is 0.
func (w Window) Left(at time.Time, used time.Duration) time.Duration {
	if !w.rollOver {
		return 0
	}
	return max(w.Grace(at)-used, 0)
}
