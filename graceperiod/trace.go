package graceperiod

import v1 "k8s.io/api/core/v1"

// Rule names a rule that takes part in a grace period, such as "Deletion", "Spec" or
// "PodMinimum". The values are stable and few, so that they can serve as metric labels.
type Rule string

// The rules. Each function asks some of them, in the order of the steps of its
// explanation.
const (
	// ruleDeletion uses metadata.deletionGracePeriodSeconds, which the API
	// server sets when the pod is deleted.
	ruleDeletion Rule = "Deletion"
	// ruleStartupProbe uses the grace period of a failed startup probe; it applies
	// only if the pod's spec has one too.
	ruleStartupProbe Rule = "StartupProbe"
	// ruleLivenessProbe uses the grace period of a failed liveness probe; it applies
	// only if the pod's spec has one too.
	ruleLivenessProbe Rule = "LivenessProbe"
	// ruleSpec uses spec.terminationGracePeriodSeconds.
	ruleSpec Rule = "Spec"
	// ruleContainerMinimum uses [MinimumContainerSeconds] if no field is set.
	ruleContainerMinimum Rule = "ContainerMinimum"
	// ruleCurrent starts with the grace period that the pod was given before; 0 is
	// undecided.
	ruleCurrent Rule = "Current"
	// ruleOverride uses the override of the caller.
	ruleOverride Rule = "Override"
	// ruleShrinksOnly goes back to the grace period that the pod was given before if
	// the other rules would lengthen it.
	ruleShrinksOnly Rule = "ShrinksOnly"
	// rulePodMinimum raises the result to [MinimumPodSeconds].
	rulePodMinimum Rule = "PodMinimum"
	// ruleNoOptions uses 0 for a delete without options.
	ruleNoOptions Rule = "NoOptions"
	// ruleOptions uses options.gracePeriodSeconds of a delete.
	ruleOptions Rule = "Options"
	// ruleNoGrace uses 0 if neither the options nor the pod have a grace period.
	ruleNoGrace Rule = "NoGrace"
	// ruleUnscheduled uses 0 for a pod without spec.nodeName.
	ruleUnscheduled Rule = "Unscheduled"
	// ruleFinished uses 0 for a pod whose status.phase is Failed or Succeeded.
	ruleFinished Rule = "Finished"
	// ruleNegative raises a negative grace period of a delete to 1.
	ruleNegative Rule = "Negative"
	// ruleEvictionMaximum starts with the kubelet's evictionMaxPodGracePeriod,
	// unless that is negative.
	ruleEvictionMaximum Rule = "EvictionMaximum"
	// ruleDefault uses [DefaultSeconds] if the maximum is negative and the pod has no
	// grace period.
	ruleDefault Rule = "Default"
	// ruleBucket starts with the time that a bucket of a node shutdown has left.
	ruleBucket Rule = "Bucket"
)

// Step is one rule that was asked.
type Step struct {
	Rule Rule
	// Field is what the rule read: the path of a field of the pod, such as
	// spec.containers[2].livenessProbe.terminationGracePeriodSeconds, or of the
	// delete options, such as options.gracePeriodSeconds, or the name of a parameter
	// of the function; "" if it read nothing.
	Field string
	// Value is the rule's value in seconds: that of Field, or a constant; 0 if Set is
	// false.
	Value int64
	// Set reports whether the rule has a value. It is false only if the field named by Field is nil.
	Set bool
	// Applied reports whether Value became the result so far. The last step with
	// Applied gives [Explanation.Seconds].
	Applied bool
}

// The fields that the rules read.
const (
	fieldDeletionGrace = "metadata.deletionGracePeriodSeconds"
	fieldSpecGrace     = "spec.terminationGracePeriodSeconds"
)

// trace collects the steps of an explanation. A nil trace collects nothing, so that a
// For function and its Explain function can share one body.
type trace struct {
	steps []Step
}

// field adds a step for a rule that read value from field, and returns applied, so that
// the caller can add the step and branch in one expression. This method, constant and
// probeField are small enough to be inlined: a nil trace costs one comparison.
func (t *trace) field(rule Rule, field string, value *int64, applied bool) bool {
	if t != nil {
		t.add(rule, field, value, applied)
	}
	return applied
}

// constant adds a step for a rule that always has a value.
func (t *trace) constant(rule Rule, field string, seconds int64, applied bool) bool {
	if t != nil {
		t.add(rule, field, &seconds, applied)
	}
	return applied
}

// probeField returns the path of a probe's grace period, "" for a nil trace: only an
// explanation pays for the search of the container.
func (t *trace) probeField(pod *v1.Pod, container *v1.Container, rule Rule) string {
	if t == nil {
		return ""
	}
	return containerPath(pod, container) + probePath(rule)
}

// add adds a step; a nil value is unset. It is not inlined because that would make some
// For functions take half as long again.
//
//go:noinline
func (t *trace) add(rule Rule, field string, value *int64, applied bool) {
	step := Step{Rule: rule, Field: field, Set: value != nil, Applied: applied}
	if value != nil {
		step.Value = *value
	}
	t.steps = append(t.steps, step)
}
