package graceperiod

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
)

// minimumKillTimeout is the least that a kill is awaited, whatever its grace.
const minimumKillTimeout = 10 * time.Second

// KillTimeout is how long to wait for a kill with a grace of seconds before it is
// reported as overdue: one and a half times the grace, in whole seconds, and 10 s
// at least (the kubelet's killPodNow). It saturates like [Duration].
func KillTimeout(seconds int64) time.Duration {
	grace := min(max(seconds, 0), mostSeconds) // one and a half times that cannot overflow
	return max(minimumKillTimeout, Duration(grace+grace/2))
}

// Remaining is what a grace of seconds leaves for the stop of a container after
// elapsed was used by its hook and its wait: less the whole seconds of elapsed, the
// fraction being the container's gain, and [MinimumContainerSeconds] at least (the
// kubelet's killContainer). A negative elapsed counts as none, so that a clock set
// back lengthens nothing.
func Remaining(seconds int64, elapsed time.Duration) int64 {
	whole := int64(max(elapsed, 0) / time.Second)
	return max(max(seconds, 0)-whole, MinimumContainerSeconds)
}

// LeftOfDeletion is the grace, in whole seconds, that an agent which restarted
// during a termination has left for the pod at the time now: up to
// metadata.deletionTimestamp, rounded up, at least [MinimumPodSeconds] and never
// more than metadata.deletionGracePeriodSeconds, even if the two clocks disagree
// (docs of the pod's termination; the kubelet itself starts the full grace again).
// A deletion without a grace is one that is over, as for the API server.
//
// A pod with no timestamp has all that [ForPod] gives it; a nil pod has
// MinimumPodSeconds.
func LeftOfDeletion(pod *v1.Pod, now time.Time) int64 {
	if pod == nil || pod.DeletionTimestamp.IsZero() {
		return forPod(nil, pod, 0, nil)
	}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		return max(min(secondsUntil(pod.DeletionTimestamp.Time, now), *grace), MinimumPodSeconds)
	}
	return MinimumPodSeconds
}

// secondsUntil is the whole seconds from now to then, rounded up: 0 if then has
// come, and the most there is for two times that are further apart.
func secondsUntil(then, now time.Time) int64 {
	to, from := then.Unix(), now.Unix()
	switch left := to - from; {
	case to < from:
		return 0
	case left < 0 || left == math.MaxInt64:
		return math.MaxInt64
	case then.Nanosecond() > now.Nanosecond():
		return left + 1
	default:
		return left
	}
}
