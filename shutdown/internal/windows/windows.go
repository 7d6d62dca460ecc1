// Package windows computes when the buckets of a drain start and end. Package plan uses it
// for a plan, and package timetable for a drain, so that both have the same times. It is
// pure: it keeps nothing, reads no clock and may be used concurrently. Every input has a
// result; sums saturate at the longest duration.
package windows

import (
	"math"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Floor is the shortest timeout of a container's stop, which may end after the grace
// period of its pod.
const Floor = time.Duration(graceperiod.MinimumContainerSeconds) * time.Second

// Bucket is the fitted time of the steps of one bucket, each 0 or more, in their order.
type Bucket struct{ Readiness, Pods, Unmount, Statuses time.Duration }

// total returns the time of all steps.
func (b Bucket) total() time.Duration {
	return Add(Add(b.Readiness, b.Pods), Add(b.Unmount, b.Statuses))
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
		at = Add(at, b.total())
		w.ends[i] = at
	}
	return w
}

// At converts a time that counts from the event. It is H at the latest.
func (w *Windows) At(d time.Duration) time.Time { return w.received.Add(min(d, w.h)) }

// First returns when the first bucket starts at the latest, if it has pods.
func (w *Windows) First() time.Time { return w.received.Add(w.first) }

// H returns when the drain stops waiting for pods, hooks and statuses.
func (w *Windows) H() time.Time { return w.received.Add(w.h) }

// Skip returns the time that rolls over to later buckets when bucket i has no pods and is
// skipped. rolledOver is the time that earlier buckets rolled over. Without roll-over the
// result is 0.
func (w *Windows) Skip(i int, rolledOver time.Duration) time.Duration {
	if !w.rollOver {
		return 0
	}
	return Add(rolledOver, w.buckets[i].Pods)
}

// Window returns the time of bucket i if it starts now. rolledOver is the time that earlier
// buckets rolled over, 0 or more, from [Window.Left] and [Windows.Skip]; it has no effect
// without roll-over. If it is not known, pass the longest duration: the planned end of the
// bucket limits it. The pods of a bucket without time have none, whatever it is.
func (w *Windows) Window(i int, now time.Time, rolledOver time.Duration) Window {
	b, start, end := w.buckets[i], max(now.Sub(w.received), 0), w.ends[i]
	one := Window{received: w.received, h: w.h, bucket: b, rollOver: w.rollOver}
	if b.Pods > 0 && w.rollOver {
		one.rolledOver = rolledOver
	} else {
		end = min(end, Add(start, b.total()))
	}
	one.end, one.podsEnd = min(end, w.h), end
	ready := Add(start, b.Readiness)
	if end < math.MaxInt64 { // a sum that has saturated limits nothing
		one.podsEnd -= Add(b.Unmount, b.Statuses)
		ready = max(start, min(ready, one.podsEnd-b.Pods)) // a bucket that starts late keeps the pods' time
	}
	one.Ready, one.End = w.At(ready), w.At(end)
	return one
}

// Add adds two durations, of which b is 0 or more. It saturates at the longest duration.
func Add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
