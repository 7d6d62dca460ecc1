package plan

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
)

// Window says when the steps of one bucket end at the latest, counted from the announcement of the shutdown.
type Window struct {
	// Ready is when the wait for readiness marks ends, and the pods are killed.
	Ready time.Duration
	// KillsEnd is when the wait for the pods ends.
	KillsEnd time.Duration
	// UnmountsEnd is when the wait for the pods' volumes ends. Unmounts may also use the time that the
	// pods leave, as in the kubelet.
	UnmountsEnd time.Duration
	// End is when the bucket ends, including its final statuses.
	End time.Duration

	graceEnd  time.Duration // the end of the grace periods; up to 100 ms after WaitEnd of the budget
	mostGrace time.Duration // the longest grace period
	own       time.Duration // BucketBudget.Pods
}

// Window returns the window of bucket i if it starts at start. The pods may take until the End of the bucket,
// less the time for unmounts and statuses. This includes the time that lower buckets leave. A bucket of 0 s
// gives its pods 0 s, whatever lower buckets leave.
//
// With [Options].NoRollOver the pods have the time of their own bucket, counted from start.
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
	w.Ready = min(max(start, min(sum(start, of.Readiness), w.graceEnd-of.Pods)), b.WaitEnd) // a late bucket gives up readiness before the pods' time
	w.End = min(end, b.WaitEnd)
	w.UnmountsEnd = min(max(end-of.Statuses, 0), b.WaitEnd)
	w.KillsEnd = min(w.graceEnd, b.WaitEnd)
	return w
}

// Seconds returns the grace period override, 0 or more, for a pod that is killed at the time at, counted from
// the announcement of the shutdown. It is the pod's own grace period or, if that is less, the time left for the
// bucket's pods ([graceperiod.ForNodeShutdown]). That time gets 100 ms added before it is rounded down to
// seconds, so that a late timer does not cost a second. A pod without a grace period gets at most
// [BucketBudget].Pods, without the time that lower buckets leave.
func (w Window) Seconds(pod *v1.Pod, at time.Duration) int64 {
	grace := min(w.graceEnd-max(at, 0), w.mostGrace)
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		grace = min(grace, w.own)
	}
	return max(graceperiod.ForNodeShutdown(pod, times.WholeSeconds(grace)), 0)
}
