package validation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// WarnNodeShutdown returns warnings about a shutdown of these pods by valid settings: the
// warnings of a [plan.Plan], for instance that the schedule is longer than the host's
// limit or a bucket shorter than a grace period of its pods, and one for each pod,
// usually a static pod, that has a priority class but no priority. Nil pods are left out.
// The result is nil if there are none.
//
// opts are the options of the manager that will drain the node, and two fields that a
// manager sets itself: Steps, because the steps besides the kills take time too, and
// Limit, how long the host waits; 0 if that is not known.
func WarnNodeShutdown(cfg plan.Config, pods []*v1.Pod, opts plan.Options) []string {
	schedule := cfg.Schedule(true)
	if len(schedule) == 0 {
		return nil // no graceful shutdown is the default, and no mistake
	}
	p := plan.New(schedule, pods, opts)
	warnings := p.Warnings
	for _, bucket := range p.Buckets {
		for _, pod := range bucket.Pods {
			if hasClassOnly(pod.Pod) && pod.Priority != 0 { // the plan warns of 0
				warnings = append(warnings, fmt.Sprintf("pod %s/%s has priority class %q but no priority: it counts as %d here and as 0 for a kubelet, which kills it first",
					pod.Pod.Namespace, pod.Pod.Name, pod.Pod.Spec.PriorityClassName, pod.Priority))
			}
		}
	}
	return warnings
}

// hasClassOnly reports whether a pod has a priority class but no priority, as static pods
// have it (k/k#133442). It does not check that the pod is a static pod: pods from the API
// server always have a priority, and an agent that reads manifests may not annotate them.
func hasClassOnly(pod *v1.Pod) bool {
	return pod.Spec.PriorityClassName != "" && pod.Spec.Priority == nil
}
