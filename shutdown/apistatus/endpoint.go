package apistatus

import (
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
)

// EndpointConditions returns the EndpointSlice conditions of a terminating pod (KEP-1672), for agents
// that write EndpointSlices themselves. Ready is false and Terminating is true. Serving is the pod's
// Ready condition. For a pod that [Reporter.MarkNotReady] has marked, Serving is ContainersReady
// instead, because such a pod still serves its open connections. A nil pod is not serving.
func EndpointConditions(pod *v1.Pod) discoveryv1.EndpointConditions {
	ready, serving, terminating := false, pod != nil && isServing(&pod.Status), true
	return discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
}

// isServing reports whether the pod can answer requests: it is ready, or only not ready because of MarkNotReady.
func isServing(status *v1.PodStatus) bool {
	ready := podcondition.Get(status, v1.PodReady)
	if ready == nil {
		return false
	}
	if isReadinessMark(ready) {
		ready = podcondition.Get(status, v1.ContainersReady)
	}
	return ready != nil && ready.Status == v1.ConditionTrue
}
