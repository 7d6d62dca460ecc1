package apistatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	// ReasonNotReady is the reason of the Ready condition of a node that shuts down:
	// the kubelet's. Its message is that of [shutdown.ErrNodeShuttingDown].
	ReasonNotReady = "KubeletNotReady"
	// ReasonReady and MessageReady are the kubelet's for a node that is ready.
	ReasonReady = "KubeletReady"
	// MessageReady belongs to [ReasonReady].
	MessageReady = "kubelet is posting ready status"
	// ReasonNodeShutdown is the reason of GracefulNodeShutdownInProgress, whatever its
	// status is: a reason of KEP-5683 names a cause and no state.
	ReasonNodeShutdown = "NodeShutdown"
	// NodeGracefulNodeShutdownInProgress is v1.NodeGracefulNodeShutdownInProgress of
	// KEP-5683, which the Kubernetes libraries before v0.37 do not have.
	NodeGracefulNodeShutdownInProgress v1.NodeConditionType = "GracefulNodeShutdownInProgress"
	// MessageNoShutdown is the message of GracefulNodeShutdownInProgress when it is
	// False.
	MessageNoShutdown = "no node shutdown is in progress"
)

// NodeConditions are the conditions of a node in a state, for an agent whose own
// node loop writes them: Ready, and GracefulNodeShutdownInProgress of KEP-5683.
// ready is the Ready condition as it is without a shutdown. Both times of both are
// now; a condition whose status is that of the node already keeps the node's
// LastTransitionTime.
func NodeConditions(state shutdown.NodeState, ready v1.NodeCondition, now time.Time) []v1.NodeCondition {
	ready.Type = v1.NodeReady
	conditions := []v1.NodeCondition{ready, {
		Type: NodeGracefulNodeShutdownInProgress, Status: v1.ConditionFalse,
		Reason: ReasonNodeShutdown, Message: MessageNoShutdown,
	}}
	if state.ShuttingDown {
		conditions = []v1.NodeCondition{notReady(), {
			Type: NodeGracefulNodeShutdownInProgress, Status: v1.ConditionTrue,
			Reason: ReasonNodeShutdown, Message: inProgress(state.Kind),
		}}
	}
	for i := range conditions {
		conditions[i].LastHeartbeatTime = metav1.NewTime(now)
		conditions[i].LastTransitionTime = metav1.NewTime(now)
	}
	return conditions
}

// kubeletReady is the Ready condition of a kubelet that has nothing to complain of.
func kubeletReady() v1.NodeCondition {
	return v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: ReasonReady, Message: MessageReady}
}

// notReady is the Ready condition of a node that shuts down.
func notReady() v1.NodeCondition {
	return v1.NodeCondition{
		Type: v1.NodeReady, Status: v1.ConditionFalse,
		Reason: ReasonNotReady, Message: shutdown.ErrNodeShuttingDown.Error(),
	}
}

// inProgress names what the host is going to do, where that is known.
func inProgress(kind shutdown.Kind) string {
	text := shutdown.ErrNodeShuttingDown.Error()
	if kind == shutdown.KindUnknown {
		return text
	}
	return text + ": " + string(kind)
}
