package apistatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	// reasonNotReady, reasonReady and messageReady are the kubelet's. During a shutdown the message is the
	// text of [shutdown.ErrNodeShuttingDown].
	reasonNotReady = "KubeletNotReady"
	reasonReady    = "KubeletReady"
	messageReady   = "kubelet is posting ready status"

	// gracefulNodeShutdownInProgress and drainInProgress are the condition types of KEP-5683, from
	// k8s.io/api v0.37 on v1.NodeGracefulNodeShutdownInProgress and v1.NodeDrainInProgress.
	gracefulNodeShutdownInProgress v1.NodeConditionType = "GracefulNodeShutdownInProgress"
	drainInProgress                v1.NodeConditionType = "DrainInProgress"
	// reasonNodeShutdown is the reason of both conditions, whether they are True or False: in KEP-5683 the reason
	// names a cause, not a state. A DrainInProgress with another reason belongs to another program.
	reasonNodeShutdown = "NodeShutdown"
	// messageShutdown and messageDrain are KEP-6249's messages of the two conditions when they are True.
	messageShutdown = "Kubelet received a shutdown signal and is terminating pods"
	messageDrain    = "Graceful node shutdown is draining pods on this node"
	// messageNoShutdown is the message of both when they are False; the KEP has none.
	messageNoShutdown = "no node shutdown is in progress"
)

// NodeConditions returns the Ready and GracefulNodeShutdownInProgress (KEP-5683) conditions for a
// state, for agents whose own loop writes the node's status. It omits DrainInProgress, which other
// programs write too; [Reporter.PublishNode] handles that one.
//
// ready is the node's Ready condition outside a shutdown; NodeConditions sets its type. Heartbeat and
// transition times are now. The caller should keep the old LastTransitionTime of a condition whose
// status has not changed.
func NodeConditions(state shutdown.NodeState, ready v1.NodeCondition, now time.Time) []v1.NodeCondition {
	ready.Type = v1.NodeReady
	conditions := []v1.NodeCondition{ready, {
		Type: gracefulNodeShutdownInProgress, Status: v1.ConditionFalse,
		Reason: reasonNodeShutdown, Message: messageNoShutdown,
	}}
	if state.ShuttingDown {
		message := messageShutdown
		if state.Kind != source.KindUnknown {
			message += ": " + string(state.Kind)
		}
		conditions = []v1.NodeCondition{notReady(), {
			Type: gracefulNodeShutdownInProgress, Status: v1.ConditionTrue,
			Reason: reasonNodeShutdown, Message: message,
		}}
	}
	return withTimes(now, conditions)
}

// drainCondition returns DrainInProgress for a state.
func drainCondition(state shutdown.NodeState) v1.NodeCondition {
	if state.ShuttingDown {
		return v1.NodeCondition{Type: drainInProgress, Status: v1.ConditionTrue, Reason: reasonNodeShutdown, Message: messageDrain}
	}
	return v1.NodeCondition{Type: drainInProgress, Status: v1.ConditionFalse, Reason: reasonNodeShutdown, Message: messageNoShutdown}
}

// withTimes sets the times of conditions to now and returns them.
func withTimes(now time.Time, conditions []v1.NodeCondition) []v1.NodeCondition {
	for i := range conditions {
		conditions[i].LastHeartbeatTime = metav1.NewTime(now)
		conditions[i].LastTransitionTime = metav1.NewTime(now)
	}
	return conditions
}

// kubeletReady returns the Ready condition that a kubelet sets outside a shutdown.
func kubeletReady() v1.NodeCondition {
	return v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: reasonReady, Message: messageReady}
}

// notReady returns the Ready condition during a shutdown.
func notReady() v1.NodeCondition {
	return v1.NodeCondition{
		Type: v1.NodeReady, Status: v1.ConditionFalse,
		Reason: reasonNotReady, Message: shutdown.ErrNodeShuttingDown.Error(),
	}
}
