package graceperiod

import v1 "k8s.io/api/core/v1"

// ForSoftEviction returns the override, in seconds, for a pod that is evicted because of a
// soft eviction threshold. It is the shorter of maxPodGracePeriodSeconds
// (evictionMaxPodGracePeriod in the kubelet's configuration) and the pod's
// spec.terminationGracePeriodSeconds. A pod without a grace period gets the maximum.
//
// A negative maximum means the pod's own grace period, as the kubelet's flag documents, or
// [DefaultSeconds] if the pod has none. (The kubelet actually gives it 1 s, k/k#118172.)
//
// The result may be 0 or less; [ForPod] raises it to the minimum. A nil pod has no grace
// period. [ExplainSoftEviction] names the rule that decided.
func ForSoftEviction(pod *v1.Pod, maxPodGracePeriodSeconds int64) int64 {
	return forSoftEviction(nil, pod, maxPodGracePeriodSeconds) // nil: no explanation is needed
}

// ExplainSoftEviction explains the result of [ForSoftEviction].
func ExplainSoftEviction(pod *v1.Pod, maxPodGracePeriodSeconds int64) Explanation {
	var t trace
	return Explanation{Seconds: forSoftEviction(&t, pod, maxPodGracePeriodSeconds), steps: t.steps}
}

// forSoftEviction computes the result of ForSoftEviction: the shorter of the maximum and the
// spec's grace period. A negative maximum does not count; if there is no grace period either, the
// result is the default. t.applies and t.appliesOptional record a rule for ExplainSoftEviction and return
// their last argument, whether the rule applies. A nil t records nothing.
func forSoftEviction(t *trace, pod *v1.Pod, maximum int64) int64 {
	hasMaximum := t.applies(ruleEvictionMaximum, "maxPodGracePeriodSeconds", maximum, maximum >= 0)
	spec := specGrace(pod)
	usesSpec := spec != nil && (!hasMaximum || *spec < maximum)
	if t.appliesOptional(ruleSpec, fieldSpecGrace, spec, usesSpec) {
		return *spec
	}
	if t.applies(ruleDefault, noField, DefaultSeconds, !hasMaximum) {
		return DefaultSeconds
	}
	return maximum
}
