package shutdown

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// Reporter reports the shutdown to the cluster. Package apistatus has one that uses client-go. A Reporter
// may also be a [StatusFlusher] and a [ReadinessMarker]; the plan reserves no time for interfaces that
// it does not implement. The context of each call has a deadline. The manager does not wait for a call
// that ignores its context, except at the end of Run.
type Reporter interface {
	// PublishNode publishes the node state. It is called once at a time, in the order of the states; a
	// newer state does not wait for a call that ignores its context. After an error it is retried with a
	// backoff from 100 ms to 30 s. If the drain's wait for it timed out, the report has the last error.
	// ctx ends when there is a newer state, or when the call takes too long. Every agent publishes a state
	// when it starts: if no shutdown is under way, this reverts what a previous agent published.
	PublishNode(ctx context.Context, state NodeState) error
}

// ReporterFunc is a function that implements [Reporter] only, such as the kubelet's SyncNodeStatusFunc,
// which reads [Manager.ShutdownStatus] itself.
type ReporterFunc func(ctx context.Context, state NodeState) error

// PublishNode calls the function.
func (f ReporterFunc) PublishNode(ctx context.Context, state NodeState) error { return f(ctx, state) }

// StatusFlusher is a [Reporter] that also sends the final statuses of pods to the API server.
type StatusFlusher interface {
	// FlushPod makes one attempt to send the final status of a pod. It returns nil when the API server
	// has accepted the status or has no such pod. It is called when a pod ends, for up to ten pods
	// concurrently. After an error it is retried until the agent ends, with a backoff from 100 ms to 1 s
	// (30 s outside a drain), or after the delay that the error suggests
	// (apierrors.SuggestsClientDelay), at most 5 s. The argument is a copy of the pod with its final
	// status. If it has a deletion timestamp, delete the pod once the status is accepted. Send nothing
	// after ctx has ended: a static pod with the same UID may run by then.
	FlushPod(ctx context.Context, pod *v1.Pod) error
}

// ReadinessMarker is a [Reporter] that also marks pods as not ready before they are killed, so that
// services stop sending them traffic. Nothing else does: a pod that its node kills has no deletion
// timestamp (kubernetes/kubernetes#105780).
type ReadinessMarker interface {
	// MarkNotReady makes one attempt to set the Ready condition of a pod to false, with a reason
	// that no probe uses. At most ten calls of MarkNotReady, RestoreReadiness and FlushPod are in
	// progress at a time, not counting those past their deadline. If more are due, FlushPod goes
	// first. A call that does not succeed in time is not repeated: the pod is killed without the mark.
	MarkNotReady(ctx context.Context, pod *v1.Pod) error
	// RestoreReadiness makes one attempt to restore the readiness that the pod had before
	// MarkNotReady. It is called for pods that a cancelled shutdown did not kill. It returns nil when
	// the API server has accepted the change, or if the condition was changed by another client.
	RestoreReadiness(ctx context.Context, pod *v1.Pod) error
}

// NodeState is the node state that a [Reporter] publishes. The zero value means that no shutdown is under
// way.
type NodeState struct {
	ShuttingDown bool        // false: no shutdown is under way, or it was cancelled
	Kind         source.Kind // what the host is going to do; not published again if another announcer changes it
}

// sendPod sends the effect's message about a pod through the Reporter: its final status, that it is not ready, or that its
// readiness is to be restored. Package node asks only for messages that the Reporter has a method for.
func (s *shell) sendPod(e node.Effect) {
	var name string
	var send func(context.Context, *v1.Pod) error
	key, pod := e.Pod.Key, e.Pod.Object
	switch e.Message {
	case node.FinalStatus:
		name, send, pod = "FlushPod", s.flusher.FlushPod, withFinalStatus(e.Pod, s.log.TimeOf(e.Pod.Ended))
	case node.NotReady:
		name, send = "MarkNotReady", s.marker.MarkNotReady
	case node.ReadyAgain:
		name, send = "RestoreReadiness", s.marker.RestoreReadiness
	}
	name = "Options.Reporter." + name + " for pod " + e.Pod.Namespace + "/" + e.Pod.Name
	s.start(e, name, func(ctx context.Context) error { return send(ctx, pod) }, func(a answer) node.Input {
		return node.MessageAnswered{Call: e.Call, Key: key, Err: a.err, RetryAfter: a.retryAfter}
	})
}

// publish publishes the node's state through the Reporter: the shutdown of the effect, or none.
func (s *shell) publish(e node.Effect) {
	var state NodeState
	if shutdown := e.Shutdown; shutdown != nil {
		state = NodeState{ShuttingDown: true, Kind: shutdown.Kind}
	}
	s.start(e, "Options.Reporter.PublishNode", func(ctx context.Context) error { return s.opts.Reporter.PublishNode(ctx, state) },
		func(a answer) node.Input { return node.Published{Call: e.Call, Err: a.err} })
}
