package validation

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

// WarnNodeShutdown says what a shutdown by valid settings will not do that one
// would expect of it: a schedule above limit, the time the host waits for; buckets
// that are shorter than the pods in them ask, or have no time; and pods, static
// ones, whose priority class nobody has looked up. limit is used as it is; 0 and
// less mean that it is not known. Nil means that there is nothing to say.
func WarnNodeShutdown(cfg shutdown.Config, limit time.Duration, pods []*v1.Pod) []string {
	// The defaults of a manager: what the plan says is what will happen.
	opts := shutdown.PlanOptions{Limit: max(limit, 0)}
	plan := shutdown.NewPlan(cfg.Schedule(true), pods, opts)
	warnings := plan.Warnings
	for _, bucket := range plan.Buckets {
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
