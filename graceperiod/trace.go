package graceperiod

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
)

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
// applied, so that a body can note and branch in one expression.
func (t *trace) field(rule Rule, field string, value *int64, applied bool) bool {
	if t != nil {
		step := Step{Rule: rule, Field: field, Set: value != nil, Applied: applied}
		if value != nil {
			step.Value = *value
		}
		t.steps = append(t.steps, step)
	}
	return applied
}

// constant notes a rule that gives seconds of its own, whatever it looked at.
func (t *trace) constant(rule Rule, field string, seconds int64, applied bool) bool {
	if t != nil {
		t.steps = append(t.steps, Step{Rule: rule, Field: field, Value: seconds, Set: true, Applied: applied})
	}
	return applied
}

// probeField is the path of the grace of container's probe, "" without a trace:
// looking for the container is work that only an explanation pays for.
func (t *trace) probeField(pod *v1.Pod, container *v1.Container, rule Rule) string {
	if t == nil {
		return ""
	}
	probe := ".livenessProbe"
	if rule == RuleStartupProbe {
		probe = ".startupProbe"
	}
	return containerPath(pod, container) + probe + ".terminationGracePeriodSeconds"
}

// containerPath is where container stands in pod, as the API server writes paths.
// A container is looked for by identity and then by name, since callers often
// hold a copy; one that is not in the pod is just "container".
func containerPath(pod *v1.Pod, container *v1.Container) string {
	if pod == nil || container == nil {
		return "container"
	}
	lists := [...]containerList{
		{"spec.containers", len(pod.Spec.Containers), func(i int) *v1.Container { return &pod.Spec.Containers[i] }},
		{"spec.initContainers", len(pod.Spec.InitContainers), func(i int) *v1.Container { return &pod.Spec.InitContainers[i] }},
		{"spec.ephemeralContainers", len(pod.Spec.EphemeralContainers), func(i int) *v1.Container {
			return (*v1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		}},
	}
	for _, same := range [...]func(*v1.Container) bool{
		func(c *v1.Container) bool { return c == container },
		func(c *v1.Container) bool { return c.Name == container.Name },
	} {
		for _, list := range lists {
			if i := list.index(same); i >= 0 {
				return list.path + "[" + strconv.Itoa(i) + "]"
			}
		}
	}
	return "container"
}

// containerList is one of a pod's three lists of containers.
type containerList struct {
	path string
	size int
	at   func(int) *v1.Container
}

// index is the first position whose container is wanted, or -1.
func (l containerList) index(wanted func(*v1.Container) bool) int {
	for i := range l.size {
		if wanted(l.at(i)) {
			return i
		}
	}
	return -1
}
