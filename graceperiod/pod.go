package graceperiod

import v1 "k8s.io/api/core/v1"

// ForPod returns the grace period of a whole pod, in seconds and at least
// [MinimumPodSeconds] (the kubelet's calculateEffectiveGracePeriod). current is the grace
// period that the pod already has, or 0 if its termination has not begun. override is the
// grace period that an eviction, a node shutdown or another kill requests, or nil.
//
// The result starts as current. metadata.deletionGracePeriodSeconds replaces it if it is
// shorter, or if the result is 0 so far. Then override does the same. If none of the three
// is set, spec.terminationGracePeriodSeconds is used. An explicit 0 therefore means the
// minimum, not the grace period of the spec.
//
// A forced deletion has a deletionGracePeriodSeconds of 0, which any override replaces,
// even a longer one:
//
//   - If current is 0, the pod gets the whole override, as in the kubelet.
//   - If current is positive, the pod gets at most current. (The kubelet gives it the whole
//     override here too, which undoes the forced deletion.)
//
// shortened reports whether the result is less than current, so that a running
// termination must end earlier. The result never exceeds a positive current. A negative
// current means that the grace period has ended, and returns the minimum.
//
// A nil pod has no grace periods. [ExplainPod] names the rule that decided.
func ForPod(pod *v1.Pod, current int64, override *int64) (seconds int64, shortened bool) {
	seconds = forPod(nil, pod, current, override) // nil: no explanation is needed
	return seconds, seconds < current
}

// ExplainPod explains the result of [ForPod]. The grace period was shortened if Seconds is
// less than current.
func ExplainPod(pod *v1.Pod, current int64, override *int64) Explanation {
	var t trace
	return Explanation{Seconds: forPod(&t, pod, current, override), steps: t.steps}
}

// forPod computes the result of ForPod. Each rule may replace the result of the rules before it, so
// their order matters. The deletion and the override do so only if they are set and shorter, or if grace
// is 0 (replaces). The spec counts only if current and these two have decided nothing. t.applies and
// t.appliesOptional record a rule for ExplainPod and return their last argument, whether the rule
// applies. A nil t records nothing.
func forPod(t *trace, pod *v1.Pod, current int64, override *int64) int64 {
	grace := current
	isDecided := t.applies(ruleCurrent, "current", current, current != 0)
	if deletion := deletionGrace(pod); t.appliesOptional(ruleDeletion, fieldDeletionGrace, deletion, replaces(grace, deletion)) {
		grace, isDecided = *deletion, true
	}
	if t.appliesOptional(ruleOverride, "override", override, replaces(grace, override)) {
		grace, isDecided = *override, true
	}
	if !isDecided {
		grace = podSpecGrace(t, pod)
	}
	if t.applies(ruleNeverExtended, "current", current, current > 0 && grace > current) {
		grace = current
	}
	if t.applies(rulePodMinimum, noField, MinimumPodSeconds, grace < MinimumPodSeconds) {
		grace = MinimumPodSeconds
	}
	return grace
}

// replaces reports whether requested replaces grace: requested must be set, and must be
// shorter than grace unless grace is 0, which means that nothing has been decided yet.
func replaces(grace int64, requested *int64) bool {
	return requested != nil && (grace == 0 || *requested < grace)
}

// podSpecGrace returns the grace period of the pod's spec, or 0 if it is not set.
// t.appliesOptional records the rule for ExplainPod and returns its last argument.
func podSpecGrace(t *trace, pod *v1.Pod) int64 {
	spec := specGrace(pod)
	if t.appliesOptional(ruleSpec, fieldSpecGrace, spec, spec != nil) {
		return *spec
	}
	return 0
}
