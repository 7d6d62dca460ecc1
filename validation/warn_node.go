package validation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// WarnNodeShutdown returns warnings about a shutdown of these pods; cfg must be valid. They are those of a [plan.Plan],
// for instance that the schedule exceeds the host's limit, or that a bucket is shorter than a pod's grace period. There is
// also one for each pod, usually a static pod, that has a priority class but no priority. Nil pods are ignored. The
// result is nil if there are no warnings.
//
// opts are the options of the manager. Also set two fields that a manager sets itself: Steps,
// because these steps need time too, and Limit, the delay that the host grants, or 0 if unknown.
func WarnNodeShutdown(cfg plan.Config, pods []*v1.Pod, opts plan.Options) []string {
	const byPriority = true // cfg.ShutdownGracePeriodByPodPriority counts: its feature is on
	schedule := cfg.Schedule(byPriority)
	if len(schedule) == 0 {
		return nil // no graceful shutdown is the default, and no mistake
	}
	p := plan.New(schedule, pods, opts)
	warnings := p.Warnings
	for _, bucket := range p.Buckets {
		for _, pod := range bucket.Pods {
			if hasClassWithoutPriority(pod.Pod) && pod.Priority != 0 { // the plan already warns about 0
				warnings = append(warnings, fmt.Sprintf("pod %s/%s has priority class %q but no priority: it counts as %d here and as 0 for a kubelet, which kills it first",
					pod.Pod.Namespace, pod.Pod.Name, pod.Pod.Spec.PriorityClassName, pod.Priority))
			}
		}
	}
	return warnings
}

// hasClassWithoutPriority reports whether a pod has a priority class but no priority, like static pods
// (k/k#133442). It does not check the annotations of a static pod, because an agent that reads
// manifests may not set them.
func hasClassWithoutPriority(pod *v1.Pod) bool {
	return pod.Spec.PriorityClassName != "" && pod.Spec.Priority == nil
}
