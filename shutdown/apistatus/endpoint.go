package apistatus

import (
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
)

// EndpointConditions returns the conditions of a terminating pod's endpoint in an
// EndpointSlice (KEP-1672), for agents that write EndpointSlices themselves. Ready is
// false and Terminating is true. Serving is the status of the pod's Ready condition; for
// a pod that [Reporter.MarkNotReady] has marked it is that of ContainersReady instead,
// because such a pod still serves its open connections. A nil pod does not serve.
func EndpointConditions(pod *v1.Pod) discoveryv1.EndpointConditions {
	ready, serving, terminating := false, pod != nil && serves(&pod.Status), true
	return discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
}

// serves reports whether the pod's containers are ready to serve.
func serves(status *v1.PodStatus) bool {
	ready := podcondition.Get(status, v1.PodReady)
	if ready == nil {
		return false
	}
	if isMark(ready) {
		ready = podcondition.Get(status, v1.ContainersReady)
	}
	return ready != nil && ready.Status == v1.ConditionTrue
}
