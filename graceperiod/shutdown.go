package graceperiod

import v1 "k8s.io/api/core/v1"

// ForNodeShutdown is the override, in seconds, for a pod in a node shutdown whose
// bucket has bucketSeconds left: the pod's own spec.terminationGracePeriodSeconds
// if it is not longer, else bucketSeconds (killPods of the kubelet's nodeshutdown
// manager, KEP-2712).
//
// The result is as raw as its inputs, 0 and less included; [ForPod] brings it to
// the floor. A nil pod has no grace of its own. [ExplainNodeShutdown] says which
// of the two decided.
func ForNodeShutdown(pod *v1.Pod, bucketSeconds int64) int64 {
	return forNodeShutdown(nil, pod, bucketSeconds)
}

// ExplainNodeShutdown is [ForNodeShutdown] with its reasons.
func ExplainNodeShutdown(pod *v1.Pod, bucketSeconds int64) Explanation {
	var t trace
	return Explanation{Seconds: forNodeShutdown(&t, pod, bucketSeconds), Steps: t.steps}
}

func forNodeShutdown(t *trace, pod *v1.Pod, bucketSeconds int64) int64 {
	t.constant(ruleBucket, "bucketSeconds", bucketSeconds, true)
	spec := specGrace(pod)
	if t.field(ruleSpec, fieldSpecGrace, spec, spec != nil && *spec <= bucketSeconds) {
		return *spec
	}
	return bucketSeconds
}
