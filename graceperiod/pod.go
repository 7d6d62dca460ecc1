package graceperiod

import v1 "k8s.io/api/core/v1"

// ForPod returns the grace period of a whole pod, in seconds and at least
// [MinimumPodSeconds]. current is the grace period that the pod was given before, 0 if
// its termination has not begun. override is what an eviction, a node shutdown or
// another kill asks for, nil if nothing does. The rule is the kubelet's
// calculateEffectiveGracePeriod.
//
// The function starts with current. metadata.deletionGracePeriodSeconds, and after it
// override, replaces the value so far if that is 0 (undecided) or longer. If none of
// the three is set, spec.terminationGracePeriodSeconds decides. An explicit 0 therefore
// means the minimum, not the grace period of the spec.
//
// shortened reports whether the result is less than current, so that a termination
// under way has to end earlier. The result never exceeds a positive current. (The
// kubelet's does in one case, which undoes a forced deletion:
// deletionGracePeriodSeconds is 0 and override is longer than current.) A negative
// current is a grace period that has run out, and gives the minimum.
//
// A nil pod has neither field. [ExplainPod] says which rule decided.
func ForPod(pod *v1.Pod, current int64, override *int64) (seconds int64, shortened bool) {
	seconds = forPod(nil, pod, current, override)
	return seconds, seconds < current
}

// ExplainPod returns the result of [ForPod] with its reasons. The grace period was
// shortened if Seconds is less than current.
func ExplainPod(pod *v1.Pod, current int64, override *int64) Explanation {
	var t trace
	return Explanation{Seconds: forPod(&t, pod, current, override), steps: t.steps}
}

func forPod(t *trace, pod *v1.Pod, current int64, override *int64) int64 {
	grace, decided := current, t.constant(ruleCurrent, "current", current, current != 0)
	if deletion := deletionGrace(pod); t.field(ruleDeletion, fieldDeletionGrace, deletion, replaces(grace, deletion)) {
		grace, decided = *deletion, true
	}
	if t.field(ruleOverride, "override", override, replaces(grace, override)) {
		grace, decided = *override, true
	}
	if !decided {
		grace = podSpecGrace(t, pod)
	}
	if t.constant(ruleShrinksOnly, "current", current, current > 0 && grace > current) {
		grace = current
	}
	if t.constant(rulePodMinimum, "", MinimumPodSeconds, grace < MinimumPodSeconds) {
		grace = MinimumPodSeconds
	}
	return grace
}

// replaces reports whether requested takes the place of grace: it is set, and grace is
// undecided (0) or longer.
func replaces(grace int64, requested *int64) bool {
	return requested != nil && (grace == 0 || *requested < grace)
}

// podSpecGrace returns the grace period of the pod's spec, 0 if it has none.
func podSpecGrace(t *trace, pod *v1.Pod) int64 {
	spec := specGrace(pod)
	if t.field(ruleSpec, fieldSpecGrace, spec, spec != nil) {
		return *spec
	}
	return 0
}
