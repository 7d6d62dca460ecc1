package graceperiod

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
)

// The periods that Kubernetes itself fixes, in seconds.
const (
	// DefaultSeconds is what the API server fills in for a pod that says nothing
	// about its grace (SetDefaults_PodSpec). A pod that never went through an API
	// server, a static one for instance, has no such default.
	DefaultSeconds int64 = 30
	// MinimumPodSeconds is the least a pod is given, however little was asked
	// (the kubelet's calculateEffectiveGracePeriod).
	MinimumPodSeconds int64 = 1
	// MinimumContainerSeconds is the least a container's stop is given once its
	// hook has run (the kubelet's minimumGracePeriodInSeconds), so that a hook
	// that used up the grace still leaves time between TERM and KILL.
	MinimumContainerSeconds int64 = 2
	// ImmediateEvictionSeconds is the override of a hard eviction (the kubelet's
	// immediateEvictionGracePeriodSeconds).
	ImmediateEvictionSeconds int64 = 1
)

// KillReason says why a single container is stopped. Only the two probe reasons
// change the grace; every other value counts as [ReasonUnknown].
type KillReason string

// The reasons the kubelet knows, spelled as it spells them.
const (
	// ReasonUnknown is every stop that no probe and no hook asked for, among
	// them the stop of a whole pod.
	ReasonUnknown KillReason = "Unknown"
	// ReasonStartupProbe is a startup probe that failed; the probe's own grace
	// may apply (KEP-2238).
	ReasonStartupProbe KillReason = "StartupProbe"
	// ReasonLivenessProbe is a liveness probe that failed; the probe's own grace
	// may apply (KEP-2238).
	ReasonLivenessProbe KillReason = "LivenessProbe"
	// ReasonFailedPostStartHook is a postStart hook that failed; the pod's grace
	// applies.
	ReasonFailedPostStartHook KillReason = "FailedPostStartHook"
)

// mostSeconds is the most whole seconds that a time.Duration holds.
const mostSeconds = math.MaxInt64 / int64(time.Second)

// Duration is seconds as a span. A number of seconds that a time.Duration, which
// ends at about 292 years, cannot hold gives the longest span of its sign.
func Duration(seconds int64) time.Duration {
	switch {
	case seconds > mostSeconds:
		return math.MaxInt64
	case seconds < -mostSeconds:
		return math.MinInt64
	default:
		return time.Duration(seconds) * time.Second
	}
}

// deletionGrace is metadata.deletionGracePeriodSeconds, nil for a nil pod.
func deletionGrace(pod *v1.Pod) *int64 {
	if pod == nil {
		return nil
	}
	return pod.DeletionGracePeriodSeconds
}

// specGrace is spec.terminationGracePeriodSeconds, nil for a nil pod.
func specGrace(pod *v1.Pod) *int64 {
	if pod == nil {
		return nil
	}
	return pod.Spec.TerminationGracePeriodSeconds
}
