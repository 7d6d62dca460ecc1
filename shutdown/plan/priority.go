package plan

import v1 "k8s.io/api/core/v1"

// Priority returns the priority that assigns a pod to a bucket: the first of these that is known.
//
//   - spec.priority
//   - the priority of a built-in class in spec.priorityClassName
//   - the result of PriorityOf for spec.priorityClassName
//   - 0
//
// A nil pod has 0. The kubelet uses spec.priority only. The API server sets that field for its pods, but not
// for static pods, so the kubelet ignores the class of a static pod (k/k#133442).
func (o Options) Priority(pod *v1.Pod) int32 {
	priority, _ := o.priority(pod)
	return priority
}

// priority returns the priority of a pod. found is false if the pod names a class whose priority is unknown: the result
// is then 0.
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
	namesNoClass := pod.Spec.PriorityClassName == ""
	return 0, namesNoClass
}

// classPriority returns the priority of a class. known is false for the empty name and for a class that is
// neither built in nor known to PriorityOf.
func (o Options) classPriority(name string) (priority int32, known bool) {
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
