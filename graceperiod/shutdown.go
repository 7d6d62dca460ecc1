package graceperiod

import v1 "k8s.io/api/core/v1"

// ForNodeShutdown returns the override, in seconds, for a pod that is killed in a node
// shutdown while its bucket (its range of priorities) has bucketSeconds left. It is the
// pod's spec.terminationGracePeriodSeconds if that is not longer, else bucketSeconds
// (killPods of the kubelet's nodeshutdown manager, KEP-2712).
//
// The result is one of its inputs, unchanged, and so may be 0 or less; [ForPod] raises
// it to the minimum. A nil pod has no grace period. [ExplainNodeShutdown] says which of
// the two decided.
func ForNodeShutdown(pod *v1.Pod, bucketSeconds int64) int64 {
	return forNodeShutdown(nil, pod, bucketSeconds)
}

// ExplainNodeShutdown returns the result of [ForNodeShutdown] with its reasons.
func ExplainNodeShutdown(pod *v1.Pod, bucketSeconds int64) Explanation {
	var t trace
	return Explanation{Seconds: forNodeShutdown(&t, pod, bucketSeconds), steps: t.steps}
}

// forNodeShutdown has the rules of both functions above; a nil trace collects no reasons.
func forNodeShutdown(t *trace, pod *v1.Pod, bucketSeconds int64) int64 {
	t.constant(ruleBucket, "bucketSeconds", bucketSeconds, true)
	spec := specGrace(pod)
	if t.field(ruleSpec, fieldSpecGrace, spec, spec != nil && *spec <= bucketSeconds) {
		return *spec
	}
	return bucketSeconds
}
