package apistatus

import (
	"time"

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
	// reasonNodeShutdown is the reason of GracefulNodeShutdownInProgress, both when it is
	// True and when it is False: in KEP-5683 the reason names a cause, not a state.
	reasonNodeShutdown = "NodeShutdown"
	// gracefulNodeShutdownInProgress is the condition type of KEP-5683. k8s.io/api
	// has it as v1.NodeGracefulNodeShutdownInProgress from v0.37 on.
	gracefulNodeShutdownInProgress v1.NodeConditionType = "GracefulNodeShutdownInProgress"
	// messageNoShutdown is the message of GracefulNodeShutdownInProgress when that is
	// False.
	messageNoShutdown = "no node shutdown is in progress"
)

// NodeConditions returns the conditions that a state gives a node: Ready, and
// GracefulNodeShutdownInProgress of KEP-5683. It is for agents whose own loop writes the
// node's status.
//
// ready is the Ready condition that the node has without a shutdown; its type is set
// here. Both conditions have now as their heartbeat and transition times. When the caller
// writes a condition whose status has not changed, it should keep the old
// LastTransitionTime.
func NodeConditions(state shutdown.NodeState, ready v1.NodeCondition, now time.Time) []v1.NodeCondition {
	ready.Type = v1.NodeReady
	conditions := []v1.NodeCondition{ready, {
		Type: gracefulNodeShutdownInProgress, Status: v1.ConditionFalse,
		Reason: reasonNodeShutdown, Message: messageNoShutdown,
	}}
	if state.ShuttingDown {
		message := shutdown.ErrNodeShuttingDown.Error()
		if state.Kind != shutdown.KindUnknown {
			message += ": " + string(state.Kind)
		}
		conditions = []v1.NodeCondition{notReady(), {
			Type: gracefulNodeShutdownInProgress, Status: v1.ConditionTrue,
			Reason: reasonNodeShutdown, Message: message,
		}}
	}
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
