package graceperiod

import v1 "k8s.io/api/core/v1"

// ForSoftEviction returns the override, in seconds, for a pod that is evicted because a
// soft eviction threshold was exceeded for long enough. It is the shorter of
// maxPodGracePeriodSeconds (evictionMaxPodGracePeriod of the kubelet's configuration)
// and the pod's spec.terminationGracePeriodSeconds. A pod without the latter gets the
// maximum.
//
// A negative maximum leaves the pod its own grace period, as the kubelet's flag
// documents, or [DefaultSeconds] if it has none. (The kubelet itself gives it 1 s,
// k/k#118172.)
//
// The result is one of its inputs, unchanged, and so may be 0 or less; [ForPod] raises
// it to the minimum. A nil pod has no grace period. [ExplainSoftEviction] says which rule
// decided.
func ForSoftEviction(pod *v1.Pod, maxPodGracePeriodSeconds int64) int64 {
	return forSoftEviction(nil, pod, maxPodGracePeriodSeconds)
}

// ExplainSoftEviction returns the result of [ForSoftEviction] with its reasons.
func ExplainSoftEviction(pod *v1.Pod, maxPodGracePeriodSeconds int64) Explanation {
	var t trace
	return Explanation{Seconds: forSoftEviction(&t, pod, maxPodGracePeriodSeconds), steps: t.steps}
}

func forSoftEviction(t *trace, pod *v1.Pod, maximum int64) int64 {
	spec, limited := specGrace(pod), maximum >= 0
	t.constant(ruleEvictionMaximum, "maxPodGracePeriodSeconds", maximum, limited)
	if t.field(ruleSpec, fieldSpecGrace, spec, spec != nil && (!limited || *spec < maximum)) {
		return *spec
	}
	if t.constant(ruleDefault, "", DefaultSeconds, !limited) {
		return DefaultSeconds
	}
	return maximum
}
