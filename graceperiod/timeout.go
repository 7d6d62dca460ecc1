package graceperiod

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
)

// minimumKillTimeout is the shortest result of [KillTimeout].
const minimumKillTimeout = 10 * time.Second

// KillTimeout returns how long to wait for the kill of a pod with a grace period of seconds: one and a half times the grace
// period, rounded down to whole seconds, but at least 10 s (the kubelet's killPodNow). For 30 it is 45 s. It saturates as
// [Duration] does.
func KillTimeout(seconds int64) time.Duration {
	grace := min(max(seconds, 0), maxSeconds) // so that grace+grace/2 cannot overflow
	return max(minimumKillTimeout, Duration(grace+grace/2))
}

// Remaining returns the timeout, in seconds, for the stop of a container. seconds is its
// grace period. elapsed is the time that its preStop hook and its wait for other containers
// have already used. The result is seconds less the whole seconds of elapsed, but at least
// [MinimumContainerSeconds] (the kubelet's killContainer). A negative elapsed counts as 0,
// so that a clock that was set back does not extend the grace period.
func Remaining(seconds int64, elapsed time.Duration) int64 {
	elapsedSeconds := int64(max(elapsed, 0) / time.Second)
	return max(max(seconds, 0)-elapsedSeconds, MinimumContainerSeconds)
}

// LeftOfDeletion returns the remaining grace period of a pod at the time now, in whole
// seconds, for an agent that restarted while the pod was terminating. (The kubelet starts
// the full grace period again.)
//
// The result is the time until metadata.deletionTimestamp, rounded up. It is at most
// metadata.deletionGracePeriodSeconds even if the clocks of the node and the API server
// differ, but at least [MinimumPodSeconds]. If deletionGracePeriodSeconds is nil, the result
// is MinimumPodSeconds: the API server, too, treats such a pod as one whose grace period has
// ended.
//
// For a pod without a deletionTimestamp the result is that of [ForPod], for a nil pod
// MinimumPodSeconds.
func LeftOfDeletion(pod *v1.Pod, now time.Time) int64 {
	if pod == nil || pod.DeletionTimestamp.IsZero() {
		seconds, _ := ForPod(pod, 0, nil) // 0: the pod has no grace period yet; nil: no override
		return seconds
	}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		return max(min(secondsUntil(pod.DeletionTimestamp.Time, now), *grace), MinimumPodSeconds)
	}
	return MinimumPodSeconds
}

// secondsUntil returns the seconds from now to then, rounded up. It is 0 if then is in the
// past, and the largest int64 if the seconds do not fit. (The result of Time.Sub would be limited
// to 292 years.)
func secondsUntil(then, now time.Time) int64 {
	to, from := then.Unix(), now.Unix()
	switch difference := to - from; {
	case to < from:
		return 0
	case difference < 0 || difference == math.MaxInt64: // the difference has overflowed, or would if rounded up
		return math.MaxInt64
	case then.Nanosecond() > now.Nanosecond(): // a part of a second is left over
		return difference + 1
	default:
		return difference
	}
}
