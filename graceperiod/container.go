package graceperiod

import v1 "k8s.io/api/core/v1"

// ForContainer is the grace of one container, in seconds: the kubelet's
// setTerminationGracePeriod. The first of these that is set decides, whatever its
// value:
//
//   - the pod's metadata.deletionGracePeriodSeconds, for probe kills too
//   - the container's startupProbe or livenessProbe
//     .terminationGracePeriodSeconds, if reason is that probe and the pod has a
//     grace in its spec; it may be longer than the pod's
//   - the pod's spec.terminationGracePeriodSeconds
//   - [MinimumContainerSeconds]
//
// The result is what the field holds: 0 or less means that there is no time for
// a hook, and [Remaining] brings it to the floor of the stop. An override, from
// [ForPod] or an eviction, replaces the result instead of limiting it.
//
// A nil pod gives MinimumContainerSeconds, a nil container has no probes.
// [ExplainContainer] says which rule decided.
func ForContainer(pod *v1.Pod, container *v1.Container, reason KillReason) int64 {
	return forContainer(nil, pod, container, reason)
}

func forContainer(t *trace, pod *v1.Pod, container *v1.Container, reason KillReason) int64 {
	deletion, spec := deletionGrace(pod), specGrace(pod)
	if t.field(RuleDeletion, fieldDeletionGrace, deletion, deletion != nil) {
		return *deletion
	}
	if rule := probeRule(reason); rule != "" {
		own := probeGrace(container, rule)
		if t.field(rule, t.probeField(pod, container, rule), own, own != nil && spec != nil) {
			return *own
		}
	}
	if t.field(RuleSpec, fieldSpecGrace, spec, spec != nil) {
		return *spec
	}
	t.constant(RuleContainerMinimum, "", MinimumContainerSeconds, true)
	return MinimumContainerSeconds
}

// probeRule is the rule of the probe that asked for the kill, "" if none did.
func probeRule(reason KillReason) Rule {
	switch reason {
	case ReasonStartupProbe:
		return RuleStartupProbe
	case ReasonLivenessProbe:
		return RuleLivenessProbe
	default:
		return ""
	}
}

// probeGrace is the grace that the probe of rule brings, nil if it brings none.
func probeGrace(container *v1.Container, rule Rule) *int64 {
	if container == nil {
		return nil
	}
	probe := container.LivenessProbe
	if rule == RuleStartupProbe {
		probe = container.StartupProbe
	}
	if probe == nil {
		return nil
	}
	return probe.TerminationGracePeriodSeconds
}
