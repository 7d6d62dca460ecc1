package graceperiod

import v1 "k8s.io/api/core/v1"

// ForNodeShutdown returns the override, in seconds, for a pod that is killed in a node
// shutdown: the shorter of remainingSeconds, the remaining time of the pod's bucket (its range
// of priorities), and spec.terminationGracePeriodSeconds (killPods of the kubelet's
// nodeshutdown manager, KEP-2712).
//
// The result may be 0 or less; [ForPod] raises it to the minimum. A nil pod has no grace
// period. [ExplainNodeShutdown] names the rule that decided.
func ForNodeShutdown(pod *v1.Pod, remainingSeconds int64) int64 {
	return forNodeShutdown(nil, pod, remainingSeconds) // nil: no explanation is needed
}

// ExplainNodeShutdown explains the result of [ForNodeShutdown].
func ExplainNodeShutdown(pod *v1.Pod, remainingSeconds int64) Explanation {
	var t trace
	return Explanation{Seconds: forNodeShutdown(&t, pod, remainingSeconds), steps: t.steps}
}

// forNodeShutdown computes the result of ForNodeShutdown: the shorter of the bucket's remaining
// seconds and the spec's grace period. t.note records a rule for ExplainNodeShutdown, and so does
// t.appliesOptional, which returns its last argument, whether the rule applies. A nil t records nothing.
func forNodeShutdown(t *trace, pod *v1.Pod, remainingSeconds int64) int64 {
	t.note(ruleBucket, "bucketSeconds", remainingSeconds)
	spec := specGrace(pod)
	if t.appliesOptional(ruleSpec, fieldSpecGrace, spec, spec != nil && *spec <= remainingSeconds) {
		return *spec
	}
	return remainingSeconds
}
