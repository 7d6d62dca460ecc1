package graceperiod

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Kubernetes' fixed grace periods, in seconds.
const (
	// DefaultSeconds is the default of spec.terminationGracePeriodSeconds
	// (SetDefaults_PodSpec). The API server sets it, and the kubelet for static pods. In
	// this package only [ForSoftEviction] uses it: set it in manifests that you read.
	DefaultSeconds int64 = 30
	// MinimumPodSeconds is the shortest grace period of a pod (the kubelet's
	// calculateEffectiveGracePeriod).
	MinimumPodSeconds int64 = 1
	// MinimumContainerSeconds is the shortest time between a container's stop signal and
	// SIGKILL, even after a preStop hook that used the whole grace period (the kubelet's
	// minimumGracePeriodInSeconds).
	MinimumContainerSeconds int64 = 2
	// ImmediateEvictionSeconds is the override of a hard eviction (the kubelet's
	// immediateEvictionGracePeriodSeconds).
	ImmediateEvictionSeconds int64 = 1
)

// KillReason is the reason for stopping a single container. Only the two probe reasons
// change the grace period; all other values have the effect of [ReasonUnknown].
type KillReason string

// The kubelet's reasons.
const (
	// ReasonUnknown is any other reason, such as the termination of the whole pod.
	ReasonUnknown KillReason = "Unknown"
	// ReasonStartupProbe is a failed startup probe, whose own grace period may apply
	// (KEP-2238).
	ReasonStartupProbe KillReason = "StartupProbe"
	// ReasonLivenessProbe is a failed liveness probe, whose own grace period may apply
	// (KEP-2238).
	ReasonLivenessProbe KillReason = "LivenessProbe"
	// ReasonFailedPostStartHook is a failed postStart hook.
	ReasonFailedPostStartHook KillReason = "FailedPostStartHook"
)

// maxSeconds is the largest number of whole seconds that fits into a time.Duration.
const maxSeconds = math.MaxInt64 / int64(time.Second)

// Duration converts seconds to a time.Duration. A number that does not fit (more than about
// 292 years) becomes the longest duration of the same sign.
func Duration(seconds int64) time.Duration {
	switch {
	case seconds > maxSeconds:
		return math.MaxInt64
	case seconds < -maxSeconds:
		return math.MinInt64
	default:
		return time.Duration(seconds) * time.Second
	}
}

// deletionGrace returns metadata.deletionGracePeriodSeconds, nil for a nil pod.
func deletionGrace(pod *v1.Pod) *int64 {
	if pod == nil {
		return nil
	}
	return pod.DeletionGracePeriodSeconds
}

// specGrace returns spec.terminationGracePeriodSeconds, nil for a nil pod.
func specGrace(pod *v1.Pod) *int64 {
	if pod == nil {
		return nil
	}
	return pod.Spec.TerminationGracePeriodSeconds
}
