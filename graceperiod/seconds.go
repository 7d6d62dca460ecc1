package graceperiod

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
)

// The periods that Kubernetes itself fixes, in seconds.
const (
	// DefaultSeconds is the terminationGracePeriodSeconds that the API server gives a
	// pod without one (SetDefaults_PodSpec), and the kubelet a static pod when it reads
	// its manifest. Here only [ForSoftEviction] assumes it, and a program that reads
	// manifests sets it.
	DefaultSeconds int64 = 30
	// MinimumPodSeconds is the shortest grace period of a pod, however little was
	// requested (the kubelet's calculateEffectiveGracePeriod).
	MinimumPodSeconds int64 = 1
	// MinimumContainerSeconds is the shortest timeout of a container's stop (the
	// kubelet's minimumGracePeriodInSeconds). A preStop hook that used up the grace
	// period still leaves the container this long between its stop signal and SIGKILL.
	MinimumContainerSeconds int64 = 2
	// ImmediateEvictionSeconds is the override of a hard eviction (the kubelet's
	// immediateEvictionGracePeriodSeconds).
	ImmediateEvictionSeconds int64 = 1
)

// KillReason says why a single container is stopped. Only the two probe reasons
// change the grace period; every other value has the effect of [ReasonUnknown].
type KillReason string

// The kubelet's reasons, in its spelling.
const (
	// ReasonUnknown is any reason other than a failed probe or hook, among them
	// the termination of the whole pod.
	ReasonUnknown KillReason = "Unknown"
	// ReasonStartupProbe is a failed startup probe; the probe's own grace period
	// may apply (KEP-2238).
	ReasonStartupProbe KillReason = "StartupProbe"
	// ReasonLivenessProbe is a failed liveness probe; the probe's own grace period
	// may apply (KEP-2238).
	ReasonLivenessProbe KillReason = "LivenessProbe"
	// ReasonFailedPostStartHook is a failed postStart hook; the pod's grace period
	// applies.
	ReasonFailedPostStartHook KillReason = "FailedPostStartHook"
)

// maxSeconds is the largest number of whole seconds that fits into a time.Duration.
const maxSeconds = math.MaxInt64 / int64(time.Second)

// Duration converts seconds to a time.Duration. A number that does not fit (a
// time.Duration ends at about 292 years) gives the longest duration of its sign.
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
