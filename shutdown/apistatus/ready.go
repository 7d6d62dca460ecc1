package apistatus

import v1 "k8s.io/api/core/v1"

const (
	// ReasonTakenOut is the reason of the Ready condition of a pod that MarkReady has
	// taken out of its services, told apart from any probe's by [MessageTakenOut].
	ReasonTakenOut = v1.PodReasonTerminationByKubelet
	// MessageTakenOut is the message of the Ready condition of such a pod.
	MessageTakenOut = "Pod is being terminated by its node."
)

// takenOut tells whether a Ready condition is as MarkReady has left it.
func takenOut(ready *v1.PodCondition) bool {
	return ready.Status == v1.ConditionFalse && ready.Reason == ReasonTakenOut && ready.Message == MessageTakenOut
}
