package plan

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// Priority gives the priority that decides on a pod's bucket: its explicit
// value, else that of a built-in priority class, else what PriorityOf says of
// the class, else, for a static pod, that of StaticPods, else 0. A nil pod has 0.
//
// The kubelet stops after the explicit value. Admission fills it in for pods of
// the API server but for no static pod, whose class name therefore counts for
// nothing there (k/k#133442).
func (o Options) Priority(pod *v1.Pod) int32 {
	priority, _ := o.priority(pod)
	return priority
}

// priority also tells whether the priority was found, rather than fallen back
// to 0 for want of an answer.
func (o Options) priority(pod *v1.Pod) (priority int32, found bool) {
	if pod == nil {
		return 0, true
	}
	if pod.Spec.Priority != nil {
		return *pod.Spec.Priority, true
	}
	if p, ok := o.classPriority(pod.Spec.PriorityClassName); ok {
		return p, true
	}
	if !staticpod.IsOrMirrors(pod) {
		return 0, pod.Spec.PriorityClassName == ""
	}
	if o.StaticPods != nil {
		return *o.StaticPods, true
	}
	return nodeCriticalPriority, true
}

// classPriority resolves the name of a priority class.
func (o Options) classPriority(name string) (int32, bool) {
	switch {
	case name == "":
		return 0, false
	case name == nodeCriticalClass:
		return nodeCriticalPriority, true
	case name == clusterCriticalClass:
		return SystemCriticalPriority, true
	case o.PriorityOf == nil:
		return 0, false
	default:
		return o.PriorityOf(name)
	}
}
