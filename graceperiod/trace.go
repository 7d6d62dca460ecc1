package graceperiod

import v1 "k8s.io/api/core/v1"

// Rule names one of the rules by which a grace is found, as "Deletion", "Spec" or
// "PodMinimum". The values are stable and few, so that they serve as labels.
type Rule string

// The rules, in no order: each function asks its own, in the order of the steps of
// its explanation.
const (
	// ruleDeletion takes metadata.deletionGracePeriodSeconds, which the API
	// server sets when the pod is deleted.
	ruleDeletion Rule = "Deletion"
	// ruleStartupProbe takes the grace of a failed startup probe; it applies only
	// if the pod's spec has a grace too.
	ruleStartupProbe Rule = "StartupProbe"
	// ruleLivenessProbe takes the grace of a failed liveness probe; it applies
	// only if the pod's spec has a grace too.
	ruleLivenessProbe Rule = "LivenessProbe"
	// ruleSpec takes spec.terminationGracePeriodSeconds.
	ruleSpec Rule = "Spec"
	// ruleContainerMinimum gives [MinimumContainerSeconds] where nothing is set.
	ruleContainerMinimum Rule = "ContainerMinimum"
	// ruleCurrent starts from what the pod was given before; 0 is nothing yet.
	ruleCurrent Rule = "Current"
	// ruleOverride takes what the caller of the kill asks for.
	ruleOverride Rule = "Override"
	// ruleShrinksOnly keeps what the pod was given before if the rules would
	// make it longer.
	ruleShrinksOnly Rule = "ShrinksOnly"
	// rulePodMinimum raises to [MinimumPodSeconds].
	rulePodMinimum Rule = "PodMinimum"
	// ruleNoOptions gives 0 to a delete without options.
	ruleNoOptions Rule = "NoOptions"
	// ruleOptions takes options.gracePeriodSeconds of a delete.
	ruleOptions Rule = "Options"
	// ruleNoGrace gives 0 where neither the options nor the pod say anything.
	ruleNoGrace Rule = "NoGrace"
	// ruleUnscheduled gives 0 to a pod without spec.nodeName.
	ruleUnscheduled Rule = "Unscheduled"
	// ruleFinished gives 0 to a pod whose status.phase is Failed or Succeeded.
	ruleFinished Rule = "Finished"
	// ruleNegative gives 1 where a delete would have less than 0.
	ruleNegative Rule = "Negative"
	// ruleEvictionMaximum starts from the kubelet's evictionMaxPodGracePeriod,
	// unless that is negative.
	ruleEvictionMaximum Rule = "EvictionMaximum"
	// ruleDefault gives [DefaultSeconds] where a negative maximum defers to a pod
	// that says nothing.
	ruleDefault Rule = "Default"
	// ruleBucket starts from what a bucket of a node shutdown has left.
	ruleBucket Rule = "Bucket"
)

// Step is one rule that was asked.
type Step struct {
	// Rule is which.
	Rule Rule
	// Field is what it looked at: the path of a field of the pod, as in
	// spec.containers[2].livenessProbe.terminationGracePeriodSeconds, of the
	// delete options, as in options.gracePeriodSeconds, or the name of a
	// parameter of the function; "" for a rule that looks at no field.
	Field string
	// Value is the seconds that the rule offers: what Field holds, or the rule's
	// own constant; 0 if Set is false.
	Value int64
	// Set tells whether the rule had seconds to offer: false only for a field, or
	// an override, that is nil.
	Set bool
	// Applied tells whether Value became the result. A later step may have
	// replaced it: the last applied step gives [Explanation.Seconds].
	Applied bool
}

// The fields that the rules read.
const (
	fieldDeletionGrace = "metadata.deletionGracePeriodSeconds"
	fieldSpecGrace     = "spec.terminationGracePeriodSeconds"
)

// trace collects the rules that a function asks, for its explanation. A nil
// trace collects nothing and costs a comparison: that is how a plain function and
// its explanation share one body.
type trace struct {
	steps []Step
}

// field notes that rule read value from field, and gives back whether the rule
// applied, so that a body can note and branch in one expression. It, and the two
// methods below, are small enough to be inlined, so that no trace costs no call.
func (t *trace) field(rule Rule, field string, value *int64, applied bool) bool {
	if t != nil {
		t.note(rule, field, value, applied)
	}
	return applied
}

// constant notes a rule that gives seconds of its own, whatever it looked at.
func (t *trace) constant(rule Rule, field string, seconds int64, applied bool) bool {
	if t != nil {
		t.note(rule, field, &seconds, applied)
	}
	return applied
}

// probeField is the path of the grace of container's probe, "" without a trace:
// looking for the container is work that only an explanation pays for.
func (t *trace) probeField(pod *v1.Pod, container *v1.Container, rule Rule) string {
	if t == nil {
		return ""
	}
	return containerPath(pod, container) + probePath(rule)
}

// note adds a step; a nil value is one that is not set. It stays out of the bodies
// that it would bloat: with it, some take half as long again.
//
//go:noinline
func (t *trace) note(rule Rule, field string, value *int64, applied bool) {
	step := Step{Rule: rule, Field: field, Set: value != nil, Applied: applied}
	if value != nil {
		step.Value = *value
	}
	t.steps = append(t.steps, step)
}
