package plan

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
)

// Window says when the steps of one bucket end at the latest. All times count from the event
// that announces the shutdown.
type Window struct {
	// Ready is when the wait for readiness marks ends, and the pods are killed.
	Ready time.Duration
	// KillsEnd is when the wait for the pods ends.
	KillsEnd time.Duration
	// UnmountsEnd is when the wait for their volumes ends. Unmounts have the time that the
	// pods do not use, as in the kubelet, and their own.
	UnmountsEnd time.Duration
	// End is when the bucket ends, its final statuses included.
	End time.Duration

	graceEnd  time.Duration // of the pods; it may be after the WaitEnd of the budget by 100 ms
	mostGrace time.Duration // of each pod
	own       time.Duration // what the bucket has of its own for the pods
}

// Window returns the window of bucket i if it begins at start. Its pods may take until the End
// of the bucket, less the time for unmounts and statuses, whenever it begins: so they have what
// lower buckets have left. A bucket of 0 s has no time for its pods.
//
// With [Options].NoRollOver the pods have the time of their own bucket, counted from its start.
func (b Budget) Window(i int, start time.Duration, opts Options) Window {
	if i < 0 || i >= len(b.Buckets) {
		return Window{}
	}
	of := &b.Buckets[i]
	start = max(start, 0)
	end, most := of.End, time.Duration(math.MaxInt64)
	switch {
	case of.Seconds <= 0:
		end, most = start, 0
	case opts.NoRollOver:
		end, most = min(sum(start, of.Pods, of.beside()), b.Buckets[len(b.Buckets)-1].End), of.Pods
	}
	w := Window{graceEnd: max(end-of.Unmount-of.Statuses, 0), mostGrace: most, own: of.Pods}
	w.Ready = min(max(start, min(sum(start, of.Readiness), w.graceEnd-of.Pods)), b.WaitEnd) // a bucket that begins late keeps the pods' time
	w.End = min(end, b.WaitEnd)
	w.UnmountsEnd = min(max(end-of.Statuses, 0), b.WaitEnd)
	w.KillsEnd = min(w.graceEnd, b.WaitEnd)
	return w
}

// Seconds returns the grace period override, 0 or more, with which a pod of the bucket is
// killed at a time: its own grace period, or the whole seconds until the end of the pods' time
// if those are less ([graceperiod.ForNodeShutdown]). The lag of a timer, 100 ms, costs no second.
// A pod without a grace period has at most what the bucket has of its own.
func (w Window) Seconds(pod *v1.Pod, at time.Duration) int64 {
	grace := min(w.graceEnd-max(at, 0), w.mostGrace)
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		grace = min(grace, w.own)
	}
	return max(graceperiod.ForNodeShutdown(pod, times.WholeSeconds(grace)), 0)
}
