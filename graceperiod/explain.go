package graceperiod

import v1 "k8s.io/api/core/v1"

// Rule names one of the rules by which a grace is found. The values are stable and
// few, so that they serve as labels.
type Rule string

// The rules, in no order: each function asks its own, in the order of the steps of
// its explanation.
const (
	// RuleDeletion takes metadata.deletionGracePeriodSeconds, which the API
	// server sets when the pod is deleted.
	RuleDeletion Rule = "Deletion"
	// RuleStartupProbe takes the grace of a failed startup probe; it applies only
	// if the pod's spec has a grace too.
	RuleStartupProbe Rule = "StartupProbe"
	// RuleLivenessProbe takes the grace of a failed liveness probe; it applies
	// only if the pod's spec has a grace too.
	RuleLivenessProbe Rule = "LivenessProbe"
	// RuleSpec takes spec.terminationGracePeriodSeconds.
	RuleSpec Rule = "Spec"
	// RuleContainerMinimum gives [MinimumContainerSeconds] where nothing is set.
	RuleContainerMinimum Rule = "ContainerMinimum"
	// RuleCurrent starts from what the pod was given before; 0 is nothing yet.
	RuleCurrent Rule = "Current"
	// RuleOverride takes what the caller of the kill asks for.
	RuleOverride Rule = "Override"
	// RuleShrinksOnly keeps what the pod was given before if the rules would
	// make it longer.
	RuleShrinksOnly Rule = "ShrinksOnly"
	// RulePodMinimum raises to [MinimumPodSeconds].
	RulePodMinimum Rule = "PodMinimum"
	// RuleBucket starts from what a bucket of a node shutdown has left.
	RuleBucket Rule = "Bucket"
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
	// Set tells whether the rule had seconds to offer.
	Set bool
	// Applied tells whether Value became the result. A later step may have
	// replaced it: the last applied step gives [Explanation.Seconds].
	Applied bool
}

// Explanation is a grace and how it came about.
type Explanation struct {
	// Seconds is what the plain function gives for the same parameters.
	Seconds int64
	// Steps are all rules that were asked, in order.
	Steps []Step
}

// ExplainContainer is [ForContainer] with its reasons.
func ExplainContainer(pod *v1.Pod, container *v1.Container, reason KillReason) Explanation {
	var t trace
	return Explanation{Seconds: forContainer(&t, pod, container, reason), Steps: t.steps}
}

// ExplainPod is [ForPod] with its reasons. The grace was shortened if Seconds is
// less than current.
func ExplainPod(pod *v1.Pod, current int64, override *int64) Explanation {
	var t trace
	return Explanation{Seconds: forPod(&t, pod, current, override), Steps: t.steps}
}

// ExplainNodeShutdown is [ForNodeShutdown] with its reasons.
func ExplainNodeShutdown(pod *v1.Pod, bucketSeconds int64) Explanation {
	var t trace
	return Explanation{Seconds: forNodeShutdown(&t, pod, bucketSeconds), Steps: t.steps}
}
