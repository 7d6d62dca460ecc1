// Package windows computes when the buckets of a drain start and end. Package plan uses it
// for a plan, and package timetable for a drain, so that both have the same times. It is
// pure: it keeps nothing, reads no clock and may be used concurrently. Every input has a
// result; sums saturate at the longest duration.
package windows

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
)

// Floor is the shortest timeout of a container's stop, which may end after the grace
// period of its pod.
const Floor = time.Duration(graceperiod.MinimumContainerSeconds) * time.Second

// Bucket is the fitted time of the steps of one bucket, each 0 or more, in their order.
type Bucket struct{ Readiness, Pods, Unmount, Statuses time.Duration }

// total returns the time of all steps.
func (b Bucket) total() time.Duration {
	return Sum(b.Readiness, b.Pods, b.Unmount, b.Statuses)
}

// Windows are the windows of the buckets of one drain. Make them with [New].
type Windows struct {
	received time.Time // all durations count from it
	first, h time.Duration
	buckets  []Bucket
	ends     []time.Duration // of each bucket, at the latest
	rollOver bool
}

// New returns the windows of buckets in the order of the drain. The first bucket starts at
// first at the latest, and the drain stops all waiting at h. Both count from received.
func New(buckets []Bucket, received time.Time, first, h time.Duration, rollOver bool) Windows {
	w := Windows{received: received, first: first, h: h, buckets: buckets, ends: make([]time.Duration, len(buckets)), rollOver: rollOver}
	at := first
	for i, b := range buckets {
		at = Sum(at, b.total())
		w.ends[i] = at
	}
	return w
}

// At converts a time that counts from the event. It is H at the latest.
func (w *Windows) At(d time.Duration) time.Time { return w.received.Add(min(d, w.h)) }

// First returns when the first bucket starts at the latest, if it has pods.
func (w *Windows) First() time.Time { return w.received.Add(w.first) }

// since returns how long after the event a time is; a time before it counts as the event.
func (w *Windows) since(at time.Time) time.Duration { return max(at.Sub(w.received), 0) }

// H returns when the drain stops waiting for pods, hooks and statuses.
func (w *Windows) H() time.Time { return w.received.Add(w.h) }

// Skip returns the time that rolls over to later buckets when bucket i has no pods and is
// skipped. rolledOver is the time that earlier buckets rolled over. Without roll-over the
// result is 0.
func (w *Windows) Skip(i int, rolledOver time.Duration) time.Duration {
	if !w.rollOver {
		return 0
	}
	return Sum(rolledOver, w.buckets[i].Pods)
}

// Window returns the time of bucket i if it starts now. rolledOver is the time that earlier
// buckets rolled over, 0 or more, from [Window.Left] and [Windows.Skip]; it has no effect
// without roll-over. If it is not known, pass the longest duration: the planned end of the
// bucket limits it. The pods of a bucket without time have none, whatever it is.
func (w *Windows) Window(i int, now time.Time, rolledOver time.Duration) Window {
	b, start, end := w.buckets[i], w.since(now), w.ends[i]
	one := Window{of: *w, bucket: b}
	if b.Pods > 0 && w.rollOver {
		one.rolledOver = rolledOver
	} else {
		end = min(end, Sum(start, b.total()))
	}
	one.end, one.podsEnd = min(end, w.h), end
	ready := Sum(start, b.Readiness)
	if end < math.MaxInt64 { // a sum that has saturated limits nothing
		one.podsEnd -= Sum(b.Unmount, b.Statuses)
		ready = max(start, min(ready, one.podsEnd-b.Pods)) // a bucket that starts late keeps the pods' time
	}
	one.Ready, one.End = w.At(ready), w.At(end)
	return one
}

// Window is the time of one bucket, which is known when the bucket starts. Make one with
// [Windows.Window]. Its methods take the time at which the pods are killed, because the
// readiness marks before the kills may take less than their reserve.
type Window struct {
	// Ready is when the wait for readiness marks, before the kills, ends at the
	// latest.
	Ready time.Time
	// End is when the bucket ends at the latest, its final statuses included.
	End time.Time

	of           Windows
	bucket       Bucket
	end, podsEnd time.Duration // after the event
	rolledOver   time.Duration // the time that earlier buckets rolled over to the pods
}

// Grace returns how long the pods have if they are killed at a time: their time in the
// schedule and what earlier buckets rolled over, up to the planned end. That may be after
// H, by the margin.
func (w Window) Grace(at time.Time) time.Duration {
	grace := Sum(w.bucket.Pods, w.rolledOver)
	if w.podsEnd == math.MaxInt64 {
		return grace
	}
	return max(min(grace, w.podsEnd-w.of.since(at)), 0)
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
	return max(graceperiod.ForNodeShutdown(pod, times.WholeSeconds(grace)), 0)
}

// KillsEnd returns when the wait for pods that are killed at a time ends at the latest.
func (w Window) KillsEnd(at time.Time) time.Time { return w.until(at, w.Grace(at), w.of.h) }

// UnmountsEnd returns when the wait for the volumes of pods that are killed at a time ends
// at the latest. Unmounts have the time that the pods do not use, as in the kubelet, and
// their reserve.
func (w Window) UnmountsEnd(at time.Time) time.Time {
	return w.until(at, Sum(w.Grace(at), w.bucket.Unmount), w.end-w.bucket.Statuses)
}

// Left returns the time that rolls over to later buckets if the pods of this bucket were
// killed at a time and took used to end. Without roll-over it is 0.
func (w Window) Left(at time.Time, used time.Duration) time.Duration {
	if !w.of.rollOver {
		return 0
	}
	return max(w.Grace(at)-used, 0)
}

// until returns the end of a wait that begins at a time and takes d, at the latest end.
func (w Window) until(at time.Time, d, end time.Duration) time.Time {
	return w.of.received.Add(min(Sum(w.of.since(at), d), end))
}

// Sum adds up durations, of which all but the first are 0 or more. It saturates at the
// longest duration.
func Sum(first time.Duration, more ...time.Duration) time.Duration {
	for _, d := range more {
		if first > math.MaxInt64-d {
			return math.MaxInt64
		}
		first += d
	}
	return first
}
