package graceperiod

import v1 "k8s.io/api/core/v1"

// ForSoftEviction is the override, in seconds, for a pod that goes because a soft
// eviction threshold was crossed for long enough: the shorter of
// maxPodGracePeriodSeconds (evictionMaxPodGracePeriod of the kubelet's
// configuration) and the pod's own spec.terminationGracePeriodSeconds. A pod
// without one gets the maximum.
//
// A negative maximum defers to the pod, as the kubelet's flag documents: its own
// grace, or [DefaultSeconds] if it has none. (The kubelet itself gives 1 s then,
// k/k#118172.)
//
// The result is as raw as its inputs, 0 and less included; [ForPod] brings it to
// the floor. A nil pod has no grace of its own. [ExplainSoftEviction] says which
// rule decided.
func ForSoftEviction(pod *v1.Pod, maxPodGracePeriodSeconds int64) int64 {
	return forSoftEviction(nil, pod, maxPodGracePeriodSeconds)
}

// ExplainSoftEviction is [ForSoftEviction] with its reasons.
func ExplainSoftEviction(pod *v1.Pod, maxPodGracePeriodSeconds int64) Explanation {
	var t trace
	return Explanation{Seconds: forSoftEviction(&t, pod, maxPodGracePeriodSeconds), Steps: t.steps}
}

func forSoftEviction(t *trace, pod *v1.Pod, limit int64) int64 {
	spec, limited := specGrace(pod), limit >= 0
	t.constant(ruleEvictionMaximum, "maxPodGracePeriodSeconds", limit, limited)
	if t.field(ruleSpec, fieldSpecGrace, spec, spec != nil && (!limited || *spec < limit)) {
		return *spec
	}
	if t.constant(ruleDefault, "", DefaultSeconds, !limited) {
		return DefaultSeconds
	}
	return limit
}
