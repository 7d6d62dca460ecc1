package graceperiod

import v1 "k8s.io/api/core/v1"

// ruleName is the name of a rule, such as "Deletion", "Spec" or "PodMinimum".
type ruleName string

// The names of the rules. Each pair such as ForDelete and ExplainDelete evaluates some of the rules, and the explanation
// lists these in the order of the evaluation.
const (
	// ruleDeletion uses metadata.deletionGracePeriodSeconds.
	ruleDeletion ruleName = "Deletion"
	// ruleStartupProbe uses the grace period of a failed startup probe. It applies only if
	// the pod's spec has a grace period too.
	ruleStartupProbe ruleName = "StartupProbe"
	// ruleLivenessProbe uses the grace period of a failed liveness probe. It applies only if
	// the pod's spec has a grace period too.
	ruleLivenessProbe ruleName = "LivenessProbe"
	// ruleSpec uses spec.terminationGracePeriodSeconds.
	ruleSpec ruleName = "Spec"
	// ruleContainerMinimum uses [MinimumContainerSeconds] if none of the four rules above applies.
	ruleContainerMinimum ruleName = "ContainerMinimum"
	// ruleCurrent starts with the grace period that the pod already has. It does not apply
	// to 0, which means that the pod has none yet.
	ruleCurrent ruleName = "Current"
	// ruleOverride uses the override of the caller.
	ruleOverride ruleName = "Override"
	// ruleNeverExtended restores the grace period that the pod already has, if the other
	// rules would extend it.
	ruleNeverExtended ruleName = "NeverExtended"
	// rulePodMinimum raises the result to [MinimumPodSeconds].
	rulePodMinimum ruleName = "PodMinimum"
	// ruleNoOptions uses 0 for a delete without options.
	ruleNoOptions ruleName = "NoOptions"
	// ruleOptions uses options.gracePeriodSeconds of a delete.
	ruleOptions ruleName = "Options"
	// ruleNoGrace uses 0 if neither the options nor the pod has a grace period.
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
	// ruleBucket starts with the remaining time of a bucket of a node shutdown.
	ruleBucket ruleName = "Bucket"
)

// step is one rule that was evaluated.
type step struct {
	rule ruleName
	// field is what the rule read: the path of a field of the pod or the delete options,
	// such as spec.containers[2].livenessProbe.terminationGracePeriodSeconds, the name of a
	// parameter, or noField.
	field string
	// value is the value of field, or a constant, in seconds. It is 0 if set is false.
	value int64
	// set is false if the field named by field is nil.
	set bool
	// applied reports whether value became the intermediate result. The value of the last
	// step that applied is [Explanation.Seconds].
	applied bool
}

// The fields that the rules read.
const (
	noField            = "" // of a rule with a constant value
	fieldDeletionGrace = "metadata.deletionGracePeriodSeconds"
	fieldSpecGrace     = "spec.terminationGracePeriodSeconds"
)

// trace collects the steps of an explanation. A nil trace collects nothing, so that each
// For function can share its body with its Explain function: both call a function that computes
// the grace period and takes a trace.
type trace struct {
	steps []step
}

// appliesOptional adds a rule to the trace. value is what the rule has read from field, and may be nil. It returns
// applied, so that the call can be the condition of an if. The methods appliesOptional, applies, note and
// probeField are small enough to be inlined, so that a nil trace costs only a comparison with nil.
func (t *trace) appliesOptional(rule ruleName, field string, value *int64, applied bool) bool {
	if t != nil {
		t.add(rule, field, value, applied)
	}
	return applied
}

// applies does the same as appliesOptional for a rule whose value, seconds, is never nil, such as a constant. field is what
// decides whether the rule applies: a field or a parameter, or noField.
func (t *trace) applies(rule ruleName, field string, seconds int64, applied bool) bool {
	if t != nil {
		t.add(rule, field, &seconds, applied)
	}
	return applied
}

// note adds a rule that always applies to the trace. seconds is the rule's value.
func (t *trace) note(rule ruleName, field string, seconds int64) {
	if t != nil {
		t.add(rule, field, &seconds, true)
	}
}

// probeField returns the path of a probe's grace period. For a nil trace it returns "", and
// does not search for the container.
func (t *trace) probeField(pod *v1.Pod, container *v1.Container, rule ruleName) string {
	if t == nil {
		return ""
	}
	return containerPath(pod, container) + probePath(rule)
}

// add adds a step. It must not be inlined: that makes some For functions take 50 % more time.
//
//go:noinline
func (t *trace) add(rule ruleName, field string, value *int64, applied bool) {
	added := step{rule: rule, field: field, set: value != nil, applied: applied}
	if value != nil {
		added.value = *value
	}
	t.steps = append(t.steps, added)
}
