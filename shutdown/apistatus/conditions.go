package apistatus

import (
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	// reasonNotReady is the reason of the Ready condition of a node that shuts down, as
	// the kubelet sets it. The message is the text of [shutdown.ErrNodeShuttingDown].
	reasonNotReady = "KubeletNotReady"
	// reasonReady is the reason of the Ready condition of a node that is ready, as the
	// kubelet sets it.
	reasonReady = "KubeletReady"
	// messageReady is the message that goes with reasonReady.
	messageReady = "kubelet is posting ready status"
	// reasonNodeShutdown is the reason of GracefulNodeShutdownInProgress and DrainInProgress,
	// both when they are True and when they are False: in KEP-5683 the reason names a cause,
	// not a state. It tells whether DrainInProgress is the reporter's own.
	reasonNodeShutdown = "NodeShutdown"
	// gracefulNodeShutdownInProgress is the condition type of KEP-5683. k8s.io/api
	// has it as v1.NodeGracefulNodeShutdownInProgress from v0.37 on.
	gracefulNodeShutdownInProgress v1.NodeConditionType = "GracefulNodeShutdownInProgress"
	// drainInProgress is the other condition type of KEP-5683 that KEP-6249 has a node
	// write. It is v1.NodeDrainInProgress from v0.37 on.
	drainInProgress v1.NodeConditionType = "DrainInProgress"
	// messageShutdown and messageDrain are the messages of the two conditions when they are
	// True. They are those of KEP-6249.
	messageShutdown = "Kubelet received a shutdown signal and is terminating pods"
	messageDrain    = "Graceful node shutdown is draining pods on this node"
	// messageNoShutdown is the message of both when they are False, for which the KEP has none.
	messageNoShutdown = "no node shutdown is in progress"
)

// NodeConditions returns the conditions that a state gives a node: Ready, and
// GracefulNodeShutdownInProgress of KEP-5683. It is for agents whose own loop writes the
// node's status.
//
// ready is the Ready condition that the node has without a shutdown; its type is set
// here. Both conditions have now as their heartbeat and transition times. When the caller
// writes a condition whose status has not changed, it should keep the old
// LastTransitionTime. DrainInProgress is not among them: others write it too, so it is left
// to [Reporter.PublishNode].
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
	return at(now, conditions)
}

// drainCondition returns DrainInProgress of a state.
func drainCondition(state shutdown.NodeState) v1.NodeCondition {
	if state.ShuttingDown {
		return v1.NodeCondition{Type: drainInProgress, Status: v1.ConditionTrue, Reason: reasonNodeShutdown, Message: messageDrain}
	}
	return v1.NodeCondition{Type: drainInProgress, Status: v1.ConditionFalse, Reason: reasonNodeShutdown, Message: messageNoShutdown}
}

// at sets the times of conditions to now and returns them.
func at(now time.Time, conditions []v1.NodeCondition) []v1.NodeCondition {
	for i := range conditions {
		conditions[i].LastHeartbeatTime = metav1.NewTime(now)
		conditions[i].LastTransitionTime = metav1.NewTime(now)
	}
	return conditions
}

// kubeletReady returns the Ready condition of a healthy node.
func kubeletReady() v1.NodeCondition {
	return v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: reasonReady, Message: messageReady}
}

// notReady returns the Ready condition of a node that shuts down.
func notReady() v1.NodeCondition {
	return v1.NodeCondition{
		Type: v1.NodeReady, Status: v1.ConditionFalse,
		Reason: reasonNotReady, Message: shutdown.ErrNodeShuttingDown.Error(),
	}
}
