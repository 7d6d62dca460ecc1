package graceperiod

import v1 "k8s.io/api/core/v1"

// ruleName names a rule that takes part in a grace period, such as "Deletion", "Spec" or
// "PodMinimum".
type ruleName string

// The rules. Each function asks some of them, in the order of the steps of its
// explanation.
const (
	// ruleDeletion uses metadata.deletionGracePeriodSeconds, which the API
	// server sets when the pod is deleted.
	ruleDeletion ruleName = "Deletion"
	// ruleStartupProbe uses the grace period of a failed startup probe; it applies
	// only if the pod's spec has one too.
	ruleStartupProbe ruleName = "StartupProbe"
	// ruleLivenessProbe uses the grace period of a failed liveness probe; it applies
	// only if the pod's spec has one too.
	ruleLivenessProbe ruleName = "LivenessProbe"
	// ruleSpec uses spec.terminationGracePeriodSeconds.
	ruleSpec ruleName = "Spec"
	// ruleContainerMinimum uses [MinimumContainerSeconds] if no field is set.
	ruleContainerMinimum ruleName = "ContainerMinimum"
	// ruleCurrent starts with the grace period that the pod was given before; 0 is
	// undecided.
	ruleCurrent ruleName = "Current"
	// ruleOverride uses the override of the caller.
	ruleOverride ruleName = "Override"
	// ruleShrinksOnly goes back to the grace period that the pod was given before if
	// the other rules would lengthen it.
	ruleShrinksOnly ruleName = "ShrinksOnly"
	// rulePodMinimum raises the result to [MinimumPodSeconds].
	rulePodMinimum ruleName = "PodMinimum"
	// ruleNoOptions uses 0 for a delete without options.
	ruleNoOptions ruleName = "NoOptions"
	// ruleOptions uses options.gracePeriodSeconds of a delete.
	ruleOptions ruleName = "Options"
	// ruleNoGrace uses 0 if neither the options nor the pod have a grace period.
	ruleNoGrace ruleName = "NoGrace"
	// ruleUnscheduled uses 0 for a pod without spec.nodeName.
	ruleUnscheduled ruleName = "Unscheduled"
	// ruleFinished uses 0 for a pod whose status.phase is Failed or Succeeded.
	ruleFinished ruleName = "Finished"
	// ruleNegative raises a negative grace period of a delete to 1.
	ruleNegative ruleName = "Negative"
	// ruleEvictionMaximum starts with the kubelet's evictionMaxPodGracePeriod,
	// unless that is negative.
	ruleEvictionMaximum ruleName = "EvictionMaximum"
	// ruleDefault uses [DefaultSeconds] if the maximum is negative and the pod has no
	// grace period.
	ruleDefault ruleName = "Default"
	// ruleBucket starts with the time that a bucket of a node shutdown has left.
	ruleBucket ruleName = "Bucket"
)

// step is one rule that was asked.
type step struct {
	rule ruleName
	// field is what the rule read: the path of a field of the pod, such as
	// spec.containers[2].livenessProbe.terminationGracePeriodSeconds, or of the
	// delete options, such as options.gracePeriodSeconds, or the name of a parameter
	// of the function; "" if it read nothing.
	field string
	// value is the rule's value in seconds: that of field, or a constant; 0 if set is
	// false.
	value int64
	// set reports whether the rule has a value. It is false only if the field named by field is nil.
	set bool
	// applied reports whether value became the result so far. The last step with
	// applied gives [Explanation.Seconds].
	applied bool
}

// The fields that the rules read.
const (
	fieldDeletionGrace = "metadata.deletionGracePeriodSeconds"
	fieldSpecGrace     = "spec.terminationGracePeriodSeconds"
)

// trace collects the steps of an explanation. A nil trace collects nothing, so that a
// For function and its Explain function can share one body.
type trace struct {
	steps []step
}

// field adds a step for a rule that read value from field, and returns applied, so that
// the caller can add the step and branch in one expression. This method, constant and
// probeField are small enough to be inlined: a nil trace costs one comparison.
func (t *trace) field(rule ruleName, field string, value *int64, applied bool) bool {
	if t != nil {
		t.add(rule, field, value, applied)
	}
	return applied
}

// constant adds a step for a rule that always has a value.
func (t *trace) constant(rule ruleName, field string, seconds int64, applied bool) bool {
	if t != nil {
		t.add(rule, field, &seconds, applied)
	}
	return applied
}

// probeField returns the path of a probe's grace period, "" for a nil trace: only an
// explanation pays for the search of the container.
func (t *trace) probeField(pod *v1.Pod, container *v1.Container, rule ruleName) string {
	if t == nil {
		return ""
	}
	return containerPath(pod, container) + probePath(rule)
}

// add adds a step; a nil value is unset. It is not inlined because that would make some
// For functions take half as long again.
//
//go:noinline
func (t *trace) add(rule ruleName, field string, value *int64, applied bool) {
	added := step{rule: rule, field: field, set: value != nil, applied: applied}
	if value != nil {
		added.value = *value
	}
	t.steps = append(t.steps, added)
}
