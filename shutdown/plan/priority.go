package plan

import v1 "k8s.io/api/core/v1"

// Priority returns the priority by which a pod is assigned to a bucket. It is the first
// of these that is known:
//
//   - spec.priority of the pod;
//   - the priority of the built-in class that spec.priorityClassName names;
//   - the result of PriorityOf for that class name;
//   - 0.
//
// A nil pod has 0. The kubelet uses spec.priority only. Admission sets that for the pods
// of the API server, but not for static pods, so that in a kubelet the class of a static
// pod has no effect (k/k#133442). A static pod with neither has 0 here as there.
func (o Options) Priority(pod *v1.Pod) int32 {
	priority, _ := o.priority(pod)
	return priority
}

// priority also returns false if the pod has a class whose priority is not known, so that
// 0 is only a guess.
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
	return 0, pod.Spec.PriorityClassName == ""
}

// classPriority returns the priority of a class, false if it is not known.
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
