package apistatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	// ReasonNotReady is the reason of the Ready condition of a node that shuts down, as
	// the kubelet sets it. The message is the text of [shutdown.ErrNodeShuttingDown].
	ReasonNotReady = "KubeletNotReady"
	// ReasonReady is the reason of the Ready condition of a node that is ready, as the
	// kubelet sets it.
	ReasonReady = "KubeletReady"
	// MessageReady is the message that goes with [ReasonReady].
	MessageReady = "kubelet is posting ready status"
	// ReasonNodeShutdown is the reason of GracefulNodeShutdownInProgress, both when it is
	// True and when it is False: in KEP-5683 the reason names a cause, not a state.
	ReasonNodeShutdown = "NodeShutdown"
	// NodeGracefulNodeShutdownInProgress is the condition type of KEP-5683. k8s.io/api
	// has it as v1.NodeGracefulNodeShutdownInProgress from v0.37 on.
	NodeGracefulNodeShutdownInProgress v1.NodeConditionType = "GracefulNodeShutdownInProgress"
	// MessageNoShutdown is the message of GracefulNodeShutdownInProgress when that is
	// False.
	MessageNoShutdown = "no node shutdown is in progress"
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
		Type: NodeGracefulNodeShutdownInProgress, Status: v1.ConditionFalse,
		Reason: ReasonNodeShutdown, Message: MessageNoShutdown,
	}}
	if state.ShuttingDown {
		message := shutdown.ErrNodeShuttingDown.Error()
		if state.Kind != shutdown.KindUnknown {
			message += ": " + string(state.Kind)
		}
		conditions = []v1.NodeCondition{notReady(), {
			Type: NodeGracefulNodeShutdownInProgress, Status: v1.ConditionTrue,
			Reason: ReasonNodeShutdown, Message: message,
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
	return v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: ReasonReady, Message: MessageReady}
}

// notReady returns the Ready condition of a node that shuts down.
func notReady() v1.NodeCondition {
	return v1.NodeCondition{
		Type: v1.NodeReady, Status: v1.ConditionFalse,
		Reason: ReasonNotReady, Message: shutdown.ErrNodeShuttingDown.Error(),
	}
}
