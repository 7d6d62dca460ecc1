package windows

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
// [Windows.Window]. Its methods take the time at which the pods are killed, because the
// readiness marks before the kills may take less than their reserve.
type Window struct {
	// Ready is when the wait for readiness marks, before the kills, ends at the
	// latest.
	Ready time.Time
	// End is when the bucket ends at the latest, its final statuses included.
	End time.Time

	received        time.Time // the durations but rolledOver count from it
	end, h, podsEnd time.Duration
	bucket          Bucket
	rolledOver      time.Duration // the time that earlier buckets rolled over to the pods
	rollOver        bool
}

// Grace returns how long the pods have if they are killed at a time: their time in the
// schedule and what earlier buckets rolled over, up to the planned end. That may be after
// H, by the margin.
func (w Window) Grace(at time.Time) time.Duration {
	grace := Add(w.bucket.Pods, w.rolledOver)
	if w.podsEnd == math.MaxInt64 {
		return grace
	}
	return max(min(grace, w.podsEnd-w.since(at)), 0)
}

// Seconds returns the grace period override, 0 or more, with which a pod of the bucket is
// killed at a time: its own grace period, or the result of [Window.Grace] in whole
// seconds if that is shorter ([graceperiod.ForNodeShutdown]). A pod without a grace period
// does not get the time that earlier buckets rolled over.
func (w Window) Seconds(pod *v1.Pod, at time.Time) int64 {
	grace := w.Grace(at)
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		grace = min(grace, w.bucket.Pods)
	}
	return max(graceperiod.ForNodeShutdown(pod, int64(Add(grace, timerLag)/time.Second)), 0)
}

// KillsEnd returns when the wait for pods that are killed at a time ends at the latest.
func (w Window) KillsEnd(at time.Time) time.Time { return w.until(at, w.Grace(at), w.h) }

// UnmountsEnd returns when the wait for the volumes of pods that are killed at a time ends
// at the latest. Unmounts have the time that the pods do not use, as in the kubelet, and
// their reserve.
func (w Window) UnmountsEnd(at time.Time) time.Time {
	return w.until(at, Add(w.Grace(at), w.bucket.Unmount), w.end-w.bucket.Statuses)
}

// Left returns the time that rolls over to later buckets if the pods of this bucket were
// killed at a time and took used to end. Without roll-over it is 0.
func (w Window) Left(at time.Time, used time.Duration) time.Duration {
	if !w.rollOver {
		return 0
	}
	return max(w.Grace(at)-used, 0)
}

// until returns the end of a wait that begins at a time and takes d, at the latest end.
func (w Window) until(at time.Time, d, end time.Duration) time.Time {
	return w.received.Add(min(Add(w.since(at), d), end))
}

// since returns how long after the event a time is; a time before it counts as the event.
func (w Window) since(at time.Time) time.Duration { return max(at.Sub(w.received), 0) }
