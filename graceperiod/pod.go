package graceperiod

import v1 "k8s.io/api/core/v1"

// ForPod is the grace of a whole pod, in seconds and at least
// [MinimumPodSeconds]: the kubelet's calculateEffectiveGracePeriod. current is
// what the pod was given before, 0 if its termination has not begun; override is
// what an eviction, a node shutdown or another kill asks for, nil if nothing.
//
// From current on, metadata.deletionGracePeriodSeconds and then override take the
// place of what is there if that is 0, meaning not yet decided, or longer. Only if
// none of the three decided anything, spec.terminationGracePeriodSeconds does: an
// explicit 0 means the floor and not the pod's full grace.
//
// shortened tells that the result is less than current, so that what is under way
// must be hurried. A positive current is never exceeded. (The kubelet exceeds it in
// one case, which would undo a forced deletion: deletionGracePeriodSeconds is 0
// and override longer than current.) A negative current is a grace that has run
// out and gives the floor.
//
// A nil pod has neither field. [ExplainPod] says which rule decided.
func ForPod(pod *v1.Pod, current int64, override *int64) (seconds int64, shortened bool) {
	seconds = forPod(nil, pod, current, override)
	return seconds, seconds < current
}

// ExplainPod is [ForPod] with its reasons. The grace was shortened if Seconds is
// less than current.
func ExplainPod(pod *v1.Pod, current int64, override *int64) Explanation {
	var t trace
	return Explanation{Seconds: forPod(&t, pod, current, override), Steps: t.steps}
}

func forPod(t *trace, pod *v1.Pod, current int64, override *int64) int64 {
	grace, decided := current, t.constant(ruleCurrent, "current", current, current != 0)
	if deletion := deletionGrace(pod); t.field(ruleDeletion, fieldDeletionGrace, deletion, shrinks(grace, deletion)) {
		grace, decided = *deletion, true
	}
	if t.field(ruleOverride, "override", override, shrinks(grace, override)) {
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

// shrinks tells whether wish takes the place of grace, where 0 is not yet decided.
func shrinks(grace int64, wish *int64) bool {
	return wish != nil && (grace == 0 || *wish < grace)
}

// podSpecGrace is the grace in the pod's spec, 0 if there is none.
func podSpecGrace(t *trace, pod *v1.Pod) int64 {
	spec := specGrace(pod)
	if t.field(ruleSpec, fieldSpecGrace, spec, spec != nil) {
		return *spec
	}
	return 0
}
