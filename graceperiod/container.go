package graceperiod

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

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

// ExplainContainer is [ForContainer] with its reasons.
func ExplainContainer(pod *v1.Pod, container *v1.Container, reason KillReason) Explanation {
	var t trace
	return Explanation{Seconds: forContainer(&t, pod, container, reason), Steps: t.steps}
}

func forContainer(t *trace, pod *v1.Pod, container *v1.Container, reason KillReason) int64 {
	deletion, spec := deletionGrace(pod), specGrace(pod)
	if t.field(ruleDeletion, fieldDeletionGrace, deletion, deletion != nil) {
		return *deletion
	}
	if rule := probeRule(reason); rule != "" {
		own := probeGrace(container, rule)
		if t.field(rule, t.probeField(pod, container, rule), own, own != nil && spec != nil) {
			return *own
		}
	}
	if t.field(ruleSpec, fieldSpecGrace, spec, spec != nil) {
		return *spec
	}
	t.constant(ruleContainerMinimum, "", MinimumContainerSeconds, true)
	return MinimumContainerSeconds
}

// probeRule is the rule of the probe that asked for the kill, "" if none did.
func probeRule(reason KillReason) Rule {
	switch reason {
	case ReasonStartupProbe:
		return ruleStartupProbe
	case ReasonLivenessProbe:
		return ruleLivenessProbe
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
	if rule == ruleStartupProbe {
		probe = container.StartupProbe
	}
	if probe == nil {
		return nil
	}
	return probe.TerminationGracePeriodSeconds
}

// probePath is where the probe of rule has its grace within a container.
func probePath(rule Rule) string {
	if rule == ruleStartupProbe {
		return ".startupProbe.terminationGracePeriodSeconds"
	}
	return ".livenessProbe.terminationGracePeriodSeconds"
}

// containerPath is where container stands in pod, as the API server writes paths.
// A container is looked for by identity and then by name, since callers often
// hold a copy; one that is not in the pod is just "container".
func containerPath(pod *v1.Pod, container *v1.Container) string {
	const elsewhere = "container"
	if pod == nil || container == nil {
		return elsewhere
	}
	paths, candidates := containersOf(pod)
	i := slices.Index(candidates, container)
	if i < 0 {
		i = slices.IndexFunc(candidates, func(c *v1.Container) bool { return c.Name == container.Name })
	}
	if i < 0 {
		return elsewhere
	}
	return paths[i]
}

// containersOf are the pod's containers of every kind and, at the same index, the
// path of each.
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
