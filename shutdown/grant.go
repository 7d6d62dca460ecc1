package shutdown

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

const (
	// DefaultUnmountReserve is what a [Manager] with Volumes keeps of each bucket
	// for their unmount, when [PlanOptions.UnmountReserve] is 0.
	DefaultUnmountReserve = 2 * time.Second
	// DefaultFlushReserve is what a [Manager] with a Reporter keeps of each bucket
	// for the final statuses, when [PlanOptions.FlushReserve] is 0.
	DefaultFlushReserve = time.Second
)

// grant is the override, in seconds, that a pod is killed with. left is what its
// bucket has now, own what the bucket has of its own, both less the reserves: a
// pod that does not say how long it wants is not given what has rolled over.
func grant(pod *v1.Pod, left, own time.Duration) int64 {
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		left = min(left, own)
	}
	return max(graceperiod.ForNodeShutdown(pod, int64(max(left, 0)/time.Second)), 0)
}

// reserves is what a bucket that has this much time keeps for the unmount and
// for the flush: together at most half, cut in proportion.
func (o PlanOptions) reserves(has time.Duration) (unmount, flush time.Duration) {
	unmount, flush = max(o.UnmountReserve, 0), max(o.FlushReserve, 0)
	half, sum := max(has, 0)/2, saturatingAdd(unmount, flush)
	if sum <= half {
		return unmount, flush
	}
	// Floats, because the product of two durations overflows; a nanosecond more or
	// less does not matter, but the two must not exceed the half.
	unmount = min(time.Duration(float64(half)*(float64(unmount)/float64(sum))), half)
	return unmount, half - unmount
}

// lessReserves is what the reserves leave of a bucket's time to its pods. More
// time never leaves them less, because the reserves grow by half of it at most.
func (o PlanOptions) lessReserves(has time.Duration) time.Duration {
	unmount, flush := o.reserves(has)
	return has - unmount - flush
}

// forHooks fills in the default reserves of the hooks that are set, and drops
// those of hooks that are not.
func (o PlanOptions) forHooks(volumes, reporter bool) PlanOptions {
	o.UnmountReserve = reserve(o.UnmountReserve, DefaultUnmountReserve, volumes)
	o.FlushReserve = reserve(o.FlushReserve, DefaultFlushReserve, reporter)
	return o
}

// reserve is the reserve of one hook: 0 asks for the default, a negative one for
// none, and a hook that is not set needs none.
func reserve(asked, def time.Duration, used bool) time.Duration {
	switch {
	case !used || asked < 0:
		return 0
	case asked == 0:
		return def
	default:
		return asked
	}
}
