package validation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// WarnNodeShutdown says what a shutdown by valid settings will not do that one
// would expect of it: what a [plan.Plan] of these pods warns of, a schedule above
// the host's limit for instance, or a bucket that is shorter than its pods ask; and
// pods, static ones, whose priority class nobody has looked up. nil pods are left
// out. Nil means that there is nothing to say.
//
// opts are those of the manager that will drain, with two things that it sets by
// itself: Hooks, because what it does beside the kills takes its time of the host's
// limit, and Limit, how long the host waits; 0 if that is not known.
func WarnNodeShutdown(cfg plan.Config, pods []*v1.Pod, opts plan.Options) []string {
	p := plan.New(cfg.Schedule(true), pods, opts)
	warnings := p.Warnings
	for _, bucket := range p.Buckets {
		for _, pod := range bucket.Pods {
			if hasClassOnly(pod.Pod) && pod.Priority != 0 { // of 0 the plan speaks
				warnings = append(warnings, fmt.Sprintf("pod %s/%s has priority class %q but no priority: it counts as %d here and as 0 for a kubelet, which kills it first",
					pod.Pod.Namespace, pod.Pod.Name, pod.Pod.Spec.PriorityClassName, pod.Priority))
			}
		}
	}
	return warnings
}

// hasClassOnly tells whether a pod names a priority class whose value admission
// has not filled in, as for every static pod (k/k#133442). It does not ask whether
// the pod is a static one: a pod from the API always has its value, and an agent
// that reads manifests need not annotate them.
func hasClassOnly(pod *v1.Pod) bool {
	return pod.Spec.PriorityClassName != "" && pod.Spec.Priority == nil
}
