package graceperiod

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// ForContainer returns the grace period of one container, in seconds (the kubelet's
// setTerminationGracePeriod). It is the first of these that is set:
//
//   - metadata.deletionGracePeriodSeconds of the pod, even if a probe failed
//   - terminationGracePeriodSeconds of the container's startupProbe or livenessProbe,
//     if reason names that probe and the pod's spec has a grace period; it may be longer
//     than the pod's
//   - spec.terminationGracePeriodSeconds of the pod
//   - [MinimumContainerSeconds]
//
// The value is returned unchanged. If it is 0 or less, there is no time for a preStop
// hook; [Remaining] raises it to the minimum for the stop. If the caller has an override,
// from [ForPod] or an eviction, it uses that instead of the result.
//
// A nil pod has no grace period, and a nil container has no probes. [ExplainContainer]
// names the rule that decided.
func ForContainer(pod *v1.Pod, container *v1.Container, reason KillReason) int64 {
	return forContainer(nil, pod, container, reason) // nil: no explanation is needed
}

// ExplainContainer explains the result of [ForContainer].
func ExplainContainer(pod *v1.Pod, container *v1.Container, reason KillReason) Explanation {
	var t trace
	return Explanation{Seconds: forContainer(&t, pod, container, reason), steps: t.steps}
}

// forContainer computes the result of ForContainer. The first of these that is set decides: the
// deletion, the probe that failed (only if the spec is set too, as in the kubelet), the spec, the
// minimum. t.appliesOptional records a rule for ExplainContainer and returns its last argument,
// whether the rule applies. A nil t records nothing.
func forContainer(t *trace, pod *v1.Pod, container *v1.Container, reason KillReason) int64 {
	deletion, spec := deletionGrace(pod), specGrace(pod)
	if t.appliesOptional(ruleDeletion, fieldDeletionGrace, deletion, deletion != nil) {
		return *deletion
	}
	if rule := probeRule(reason); rule != "" {
		probe := probeGrace(container, rule)
		if t.appliesOptional(rule, t.probeField(pod, container, rule), probe, probe != nil && spec != nil) {
			return *probe
		}
	}
	if t.appliesOptional(ruleSpec, fieldSpecGrace, spec, spec != nil) {
		return *spec
	}
	t.note(ruleContainerMinimum, noField, MinimumContainerSeconds)
	return MinimumContainerSeconds
}

// probeRule returns the rule for the probe whose failure is the reason of the kill, or "" if
// there is another reason.
func probeRule(reason KillReason) ruleName {
	switch reason {
	case ReasonStartupProbe:
		return ruleStartupProbe
	case ReasonLivenessProbe:
		return ruleLivenessProbe
	default:
		return ""
	}
}

// probeGrace returns the grace period of the container's startup or liveness probe, or nil
// if it is not set.
func probeGrace(container *v1.Container, rule ruleName) *int64 {
	if container == nil {
		return nil
	}
	probe := container.LivenessProbe
	if rule == ruleStartupProbe {
		probe = container.StartupProbe
	}
	if probe == nil {
		return nil
	}
	return probe.TerminationGracePeriodSeconds
}

// probePath returns the path of the field that probeGrace reads. It begins at the container.
func probePath(rule ruleName) string {
	if rule == ruleStartupProbe {
		return ".startupProbe.terminationGracePeriodSeconds"
	}
	return ".livenessProbe.terminationGracePeriodSeconds"
}

// containerPath returns the path of a container in its pod, such as spec.containers[0]. It
// compares pointers first and then names, because callers often have a copy. The path of a
// container that is not in the pod is "container".
func containerPath(pod *v1.Pod, container *v1.Container) string {
	const notInPod = "container"
	if pod == nil || container == nil {
		return notInPod
	}
	paths, candidates := containersOf(pod)
	i := slices.Index(candidates, container)
	if i < 0 {
		i = slices.IndexFunc(candidates, func(c *v1.Container) bool { return c.Name == container.Name })
	}
	if i < 0 {
		return notInPod
	}
	return paths[i]
}

// containersOf returns all containers of the pod and, at the same index, their paths.
func containersOf(pod *v1.Pod) (paths []string, containers []*v1.Container) {
	add := func(list string, i int, container *v1.Container) {
		paths = append(paths, list+"["+strconv.Itoa(i)+"]")
		containers = append(containers, container)
	}
	for i := range pod.Spec.Containers {
		add("spec.containers", i, &pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		add("spec.initContainers", i, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.EphemeralContainers {
		add("spec.ephemeralContainers", i, (*v1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return paths, containers
}
