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
	// Ready is when the wait for readiness marks ends. The pods are then killed.
	Ready time.Duration
	// KillsEnd is when the wait for the pods ends.
	KillsEnd time.Duration
	// UnmountsEnd is when the wait for the pods' volumes ends. Unmounts may also use the time that the
	// pods leave, as in the kubelet.
	UnmountsEnd time.Duration
	// End is when the bucket ends, including its final statuses.
	End time.Duration

	graceEnd time.Duration // when the longest grace period ends; may be up to 100 ms after WaitEnd of the budget
	maxGrace time.Duration // no pod gets a longer grace period, even if more time is left
	ownTime  time.Duration // the bucket's own time (BucketBudget.Pods), without what lower buckets left unused
}

// Window returns the window of bucket i if the bucket starts at start; a zero Window if there is no bucket i. The bucket
// ends at one of these times:
//
//   - Normally it ends at its End in the budget, whenever it starts. So its pods also get the time that lower buckets
//     leave unused.
//   - With [Options].NoRollOver it ends when the time of its own steps, counted from start, is over: the readiness marks,
//     the pods, the unmounts and the statuses. But it does not end after the End of the last bucket.
//   - A bucket of 0 s ends at once and gives its pods 0 s, even if lower buckets leave time unused.
//
// The pods' grace periods end before the bucket, because the unmounts and the statuses follow. Nothing in the window is
// later than WaitEnd.
func (b Budget) Window(i int, start time.Duration, opts Options) Window {
	if i < 0 || i >= len(b.Buckets) {
		return Window{}
	}
	bucket := &b.Buckets[i]
	start = max(start, 0)
	end := bucket.End
	maxGrace := time.Duration(math.MaxInt64) // no maximum
	switch {
	case bucket.Seconds <= 0:
		end, maxGrace = start, 0
	case opts.NoRollOver:
		lastEnd := b.Buckets[len(b.Buckets)-1].End
		end = min(sum(start, bucket.Pods, bucket.otherSteps()), lastEnd)
		maxGrace = bucket.Pods
	}
	w := Window{graceEnd: max(end-bucket.Unmount-bucket.Statuses, 0), maxGrace: maxGrace, ownTime: bucket.Pods}
	// The kills wait for the readiness marks, but in a bucket that starts late only so long that the pods keep their
	// own time.
	marksEnd, latestKill := sum(start, bucket.Readiness), w.graceEnd-bucket.Pods
	ready := max(min(marksEnd, latestKill), start)
	w.Ready = min(ready, b.WaitEnd)
	w.KillsEnd = min(w.graceEnd, b.WaitEnd)
	w.UnmountsEnd = min(max(end-bucket.Statuses, 0), b.WaitEnd)
	w.End = min(end, b.WaitEnd)
	return w
}

// Seconds returns the grace period override, 0 s or more, for a pod that is killed at killAt, counted from the
// announcement of the shutdown. It is the pod's own grace period or, if that is less, the time left for the
// bucket's pods ([graceperiod.ForNodeShutdown]). That time is rounded down to seconds, after 100 ms are added so that a
// late timer does not cost a second. A pod without a grace period gets at most [BucketBudget].Pods, without the time
// that lower buckets leave unused.
func (w Window) Seconds(pod *v1.Pod, killAt time.Duration) int64 {
	grace := min(w.graceEnd-max(killAt, 0), w.maxGrace)
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		grace = min(grace, w.ownTime)
	}
	return max(graceperiod.ForNodeShutdown(pod, times.WholeSeconds(grace)), 0)
}
