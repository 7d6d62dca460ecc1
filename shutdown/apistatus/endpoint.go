package apistatus

import (
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
)

// EndpointConditions are the conditions of a terminating pod's endpoint in an
// EndpointSlice (KEP-1672): not ready, terminating, and serving as long as its
// Ready condition is True. A pod that [Reporter.MarkNotReady] has taken out serves as
// long as its containers are ready: it was taken out so that nobody new comes, and
// still answers those who are there. A nil pod serves nothing.
func EndpointConditions(pod *v1.Pod) discoveryv1.EndpointConditions {
	ready, serving, terminating := false, pod != nil && serves(&pod.Status), true
	return discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
}

// serves tells whether the containers of a pod are said to answer.
func serves(status *v1.PodStatus) bool {
	ready := podcondition.Get(status, v1.PodReady)
	if ready == nil {
		return false
	}
	if takenOut(ready) {
		ready = podcondition.Get(status, v1.ContainersReady)
	}
	return ready != nil && ready.Status == v1.ConditionTrue
}
