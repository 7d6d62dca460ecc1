package manifest

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ignoredFields returns a warning for each field of a pod that this agent ignores without
// harm to the processes in the pod. Fields that processes need are refused by the
// runtime, if it does not have them.
func ignoredFields(pod *v1.Pod) []string {
	spec := field.NewPath("spec")
	var warnings []string
	if len(pod.Spec.Volumes) > 0 {
		warnings = append(warnings, spec.Child("volumes").String()+": are not made, this agent has no volumes")
	}
	for i := range pod.Spec.InitContainers {
		warnings = append(warnings, ignoredContainerFields(&pod.Spec.InitContainers[i], spec.Child("initContainers").Index(i))...)
	}
	for i := range pod.Spec.Containers {
		warnings = append(warnings, ignoredContainerFields(&pod.Spec.Containers[i], spec.Child("containers").Index(i))...)
	}
	return warnings
}

func ignoredContainerFields(c *v1.Container, at *field.Path) []string {
	var warnings []string
	for _, entry := range []struct {
		isSet bool
		name  string
		why   string
	}{
		{c.LivenessProbe != nil, "livenessProbe", "is not run, and no container started again for it"},
		{c.ReadinessProbe != nil, "readinessProbe", "is not run, a container that runs counts as ready"},
		{c.StartupProbe != nil, "startupProbe", "is not run"},
		{len(c.Resources.Requests)+len(c.Resources.Limits) > 0, "resources", "are not enforced"},
		{len(c.Ports) > 0, "ports", "are not mapped, every pod is in the network of the host"},
		{c.Lifecycle != nil && c.Lifecycle.PostStart != nil, "lifecycle.postStart", "is not run, this agent only stops pods as a kubelet does"},
	} {
		if entry.isSet {
			warnings = append(warnings, at.Child(entry.name).String()+" (container "+c.Name+"): "+entry.why)
		}
	}
	return warnings
}
